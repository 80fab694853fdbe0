//! What lives in the heap from one message to the next.
use crate::codec::{general, replies};
use crate::error::Failure;
use crate::guard::Roles;
use crate::ops::sql::policy;
use crate::ops::sql::queries::{self, Queries};
use crate::{ops, schema};
use icsql_engine::stable::manager::MemoryManager;
use icsql_engine::stable::{DATABASE_MEMORY_ID, Memory, PAGE_HASH_MEMORY_ID};
use icsql_engine::{Database, OpenOptions};
use icsql_types::{Answer, Error, InitArg};

/// The open database and what belongs to it.
pub struct Service {
    /// The database.
    pub database: Database,
    /// Who may call what.
    pub roles: Roles,
    /// The named queries, or why they cannot be read. That keeps nothing else from working.
    pub queries: Answer<Queries>,
    /// A hash of the schema of the service's own tables, which no caller's SQL may change.
    pub service_schema: [u8; 32],
    /// The tables of the entries.
    pub tables: ops::kv::Tables,
    /// What is known of the entries without asking the database.
    pub kv: ops::kv::State,
    /// When the platform's timer comes, in nanoseconds since 1970; none: it is not set.
    pub timer: Option<u64>,
    /// The whole stable memory, to ask for its size.
    pub stable: Box<dyn Memory>,
    /// Where `kv_get` builds its reply: kept, so that a call finds it large enough.
    pub value: replies::Value,
    /// Where `kv_get_many` builds its reply.
    pub values: Vec<u8>,
}

impl Service {
    /// Opens the database in `stable`, brings its tables up to date, and reads and prepares what the queries to come
    /// need.
    ///
    /// # Errors
    /// Stable memory that holds something else or is damaged, a database written by a newer version, full memory.
    pub fn open<M: Memory + Clone + 'static>(
        stable: M,
        settings: InitArg,
        options: OpenOptions,
    ) -> Result<Self, Error> {
        let manager = MemoryManager::open(stable.clone())
            .map_err(|error| Error::Other { code: "stable memory".to_owned(), message: error.to_string() })?;
        general::prepare()?;
        let open = || -> Result<Self, Failure> {
            let (image, hashes) = (manager.get(DATABASE_MEMORY_ID), manager.get(PAGE_HASH_MEMORY_ID));
            let mut database = Database::open(image, hashes, options)?;
            database.migrate(schema::MIGRATIONS)?;
            for statements in ops::kv::STATEMENTS {
                database.keep(statements)?;
            }
            let tables = ops::kv::Tables::open(&database)?;
            if let Some(public) = settings.public_kv {
                database.write(|writer| ops::access::set_public_kv(writer, public))?;
            }
            let roles = database.read(ops::access::load)?;
            let kv = database.read(|reader| Ok::<_, Failure>(ops::kv::State::load(reader)))?;
            let (queries, service_schema) = database
                .read(|reader| Ok::<_, Failure>((queries::load_prepared(reader), policy::service_schema(reader)?)))?;
            Ok(Self {
                database,
                roles,
                queries,
                service_schema,
                tables,
                kv,
                timer: None,
                stable: Box::new(stable),
                value: replies::Value::new(),
                values: Vec::new(),
            })
        };
        Ok(open()?)
    }
}
