//! How a Rust program outside the Internet Computer calls icsql: typed by `icsql-types`, sent and verified by `ic-agent`.

use candid::utils::{ArgumentEncoder, decode_one, encode_args};
use candid::{CandidType, Principal};
use ic_agent::{Agent, AgentError};
use icsql_types::method::{KV_GET, KV_PUT, Method, Mode, SQL_QUERY};
use icsql_types::{Answer, Params, Statement, Value};
use std::fmt;

/// Why there is no answer.
#[derive(Debug)]
pub enum Failure {
    /// icsql refused, and changed nothing.
    Icsql(icsql_types::Error),
    /// The network refused, or was not reached. An update whose answer was lost may have been carried out.
    Agent(AgentError),
    /// What was sent or came back is not what the contract says.
    Candid(candid::Error),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Icsql(error) => write!(f, "icsql refused: {error}"),
            Self::Agent(error) => write!(f, "the call failed: {error}"),
            Self::Candid(error) => write!(f, "the call does not fit the contract: {error}"),
        }
    }
}

impl std::error::Error for Failure {}

impl From<candid::Error> for Failure {
    fn from(error: candid::Error) -> Self {
        Self::Candid(error)
    }
}

/// An icsql canister, called with the agent's identity.
pub struct Icsql {
    agent: Agent,
    canister: Principal,
}

impl Icsql {
    /// Connects to the network at `url`. A local one has a root key of its own, which is fetched and believed; that of the
    /// Internet Computer is built in.
    ///
    /// # Errors
    /// When the URL is none, or the local network is not reached.
    pub async fn connect(url: &str, canister: Principal) -> Result<Self, AgentError> {
        // Nobody's identity. `with_identity` takes another, e.g. `BasicIdentity::from_pem_file`.
        let agent = Agent::builder().with_url(url).build()?;
        if url.starts_with("http://127.0.0.1:") || url.starts_with("http://localhost:") {
            agent.fetch_root_key().await?;
        }
        Ok(Self { agent, canister })
    }

    /// Calls a method in its own mode.
    ///
    /// # Errors
    /// See [`Failure`].
    pub async fn call<A: ArgumentEncoder, R>(&self, method: &Method<A, Answer<R>>, arguments: A) -> Result<R, Failure>
    where
        R: CandidType + for<'a> candid::Deserialize<'a>,
    {
        let argument = encode_args(arguments)?;
        let reply = match method.mode {
            Mode::Query => self.agent.query(&self.canister, method.name).with_arg(argument).await,
            Mode::Update => self.agent.update(&self.canister, method.name).with_arg(argument).await,
        };
        let answer: Answer<R> = decode_one(&reply.map_err(Failure::Agent)?)?;
        answer.map_err(Failure::Icsql)
    }
}

/// Puts, gets, asks by SQL, and meets errors. Answers what there is to say about it, a line each.
///
/// # Errors
/// When a call ends otherwise than it should.
pub async fn session(url: &str, canister: Principal) -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let db = Icsql::connect(url, canister).await?;
    let key = || "rust/greeting".to_string();
    let written = db.call(&KV_PUT, (key(), "hello from Rust".into(), None)).await?;
    let value = db.call(&KV_GET, (key(),)).await?;
    let absent = db.call(&KV_GET, ("rust/nothing".into(),)).await?;
    let refused = match db.call(&KV_PUT, (String::new(), "no key".into(), None)).await {
        Err(Failure::Icsql(icsql_types::Error::InvalidArgument { argument, message })) => {
            format!("{argument}: {message}")
        }
        Err(other) => return Err(other.into()),
        Ok(written) => return Err(format!("an empty key was taken: {written:?}").into()),
    };
    // SQL reads the same entries. Values go in as parameters.
    let statement = Statement {
        sql: "SELECT value, length(value) FROM kv WHERE key = ?1".into(),
        params: Some(Params::Positional(vec![Value::Text(key())])),
    };
    let found = db.call(&SQL_QUERY, (statement, None)).await?;
    let typo = Statement { sql: "SELECT valeu FROM kv".into(), params: None };
    let wrong = match db.call(&SQL_QUERY, (typo, None)).await {
        Err(Failure::Icsql(icsql_types::Error::Sqlite { code, message, offset, .. })) => {
            format!("code {code} at byte {}: {message}", offset.unwrap_or(0))
        }
        Err(other) => return Err(other.into()),
        Ok(found) => return Err(format!("a column that is not there was read: {found:?}").into()),
    };
    Ok(vec![
        format!("put: version {}", written.version),
        format!("get: {value:?}"),
        format!("get of a key that is not there: {absent:?}"),
        format!("put without a key: InvalidArgument, {refused}"),
        format!("SQL: {:?} in {} instructions", found.rows, found.cost.instructions),
        format!("SQL with a wrong column: Sqlite, {wrong}"),
    ])
}
