//! Compiled modules, and the caches that spare compiling the same Wasm again.

use super::{artifact, instrument};
use crate::runtime::{self, Host};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Largest module after decompression, bytes; the IC's limit.
const WASM_BYTES_MAX: u64 = 100 * 1024 * 1024;
/// Modules that the process keeps compiled.
const CACHED_MODULES_MAX: usize = 128;
/// Native stack that a canister's Wasm may use, bytes; the IC's limit.
pub(crate) const WASM_STACK_BYTES: usize = 5 * 1024 * 1024;

/// Why a Wasm cannot be installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModuleError {
    /// Not a valid module, or one that uses what the IC does not support.
    Invalid(String),
    /// It imports something that is not part of the system API.
    Import {
        /// The import's module.
        module: String,
        /// The import's name.
        name: String,
    },
    /// It exports what is reserved, or one method twice.
    Export(String),
}

impl std::fmt::Display for ModuleError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Invalid(reason) => write!(f, "Wasm module failed to validate: {reason}"),
            Self::Import { module, name } => write!(
                f,
                "Wasm module has an invalid import section. Module imports '{name}' from '{module}', \
                 which is not exported by the runtime"
            ),
            Self::Export(reason) => write!(f, "Wasm module has an invalid export section. {reason}"),
        }
    }
}

impl std::error::Error for ModuleError {}

/// How a method may be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum MethodKind {
    Update,
    Query,
    CompositeQuery,
}

impl MethodKind {
    /// What precedes the method's name in the name of its export.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Update => "canister_update ",
            Self::Query => "canister_query ",
            Self::CompositeQuery => "canister_composite_query ",
        }
    }
}

const KINDS: [MethodKind; 3] = [MethodKind::Update, MethodKind::Query, MethodKind::CompositeQuery];
const SYSTEM_EXPORTS: [&str; 7] = [
    "canister_init",
    "canister_pre_upgrade",
    "canister_post_upgrade",
    "canister_inspect_message",
    "canister_heartbeat",
    "canister_global_timer",
    "canister_on_low_wasm_memory",
];

/// What a module says about itself.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Metadata {
    pub(crate) methods: BTreeMap<String, MethodKind>,
    pub(crate) system_exports: Vec<String>,
    /// `icp:public` and `icp:private` sections: name, public, content.
    pub(crate) sections: Vec<(String, bool, Vec<u8>)>,
    /// Operators in the module's functions, as the IC counts them to price the compilation.
    pub(crate) operators: u64,
    pub(crate) mutable_globals: u32,
    /// It imports the calls that read a data certificate.
    pub(crate) reads_certificate: bool,
    /// For profiles: names of the functions by index, empty where none is known.
    #[serde(default)]
    pub(crate) functions: Vec<String>,
}

impl Metadata {
    pub(super) fn add_export(&mut self, name: &str) -> Result<(), ModuleError> {
        for kind in KINDS {
            if let Some(method) = name.strip_prefix(kind.prefix()) {
                if self.methods.insert(method.to_owned(), kind).is_some() {
                    return Err(ModuleError::Export(format!("Method '{method}' is exported more than once")));
                }
                return Ok(());
            }
        }
        if SYSTEM_EXPORTS.contains(&name) {
            self.system_exports.push(name.to_owned());
        } else if name.starts_with("canister_") {
            return Err(ModuleError::Export(format!("Exporting reserved function '{name}' with \"canister_\" prefix")));
        }
        Ok(())
    }

    pub(super) fn name_function(&mut self, index: u32, name: String) {
        let index = index as usize;
        if self.functions.len() <= index {
            self.functions.resize(index + 1, String::new());
        }
        self.functions[index] = name;
    }

    pub(super) fn add_custom_section(&mut self, name: &str, data: &[u8]) {
        if let Some(name) = name.strip_prefix("icp:public ") {
            self.sections.push((name.to_owned(), true, data.to_vec()));
        } else if let Some(name) = name.strip_prefix("icp:private ") {
            self.sections.push((name.to_owned(), false, data.to_vec()));
        }
    }

    /// The content of the metadata section `icp:public <name>` or `icp:private <name>`.
    pub fn section(&self, name: &str) -> Option<&[u8]> {
        self.sections.iter().find(|s| s.0 == name).map(|s| s.2.as_slice())
    }

    /// Names and contents of all metadata sections.
    pub(crate) fn sections(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.sections.iter().map(|s| (s.0.as_str(), s.2.as_slice()))
    }

    /// Whether the metadata section of this name is for controllers only.
    pub(crate) fn is_private(&self, name: &str) -> bool {
        self.sections.iter().any(|s| s.0 == name && !s.1)
    }

    /// Whether the module has the system's entry point of this name, e.g. `canister_init`.
    pub(crate) fn exports(&self, name: &str) -> bool {
        self.system_exports.iter().any(|e| e == name)
    }
}

/// A compiled module. Cheap to share.
pub struct Module {
    /// SHA-256 of the bytes as they were given, compressed or not.
    pub hash: [u8; 32],
    /// What the module says about itself.
    pub metadata: Metadata,
    /// The bytes as they were given.
    pub(crate) wasm: Arc<Vec<u8>>,
    pub(crate) pre: wasmtime::InstancePre<Host>,
}

impl std::fmt::Debug for Module {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Module({})", hex::encode(self.hash))
    }
}

/// The engine that all modules of the process share.
pub(crate) fn engine() -> Result<&'static wasmtime::Engine, ModuleError> {
    static ENGINE: OnceLock<Result<wasmtime::Engine, String>> = OnceLock::new();
    ENGINE
        .get_or_init(|| {
            let mut config = wasmtime::Config::new();
            config
                .cranelift_nan_canonicalization(true)
                .wasm_multi_memory(true)
                .wasm_tail_call(true)
                .wasm_relaxed_simd(false)
                // wasmtime wants this one larger, though nothing here is asynchronous.
                .async_stack_size(2 * WASM_STACK_BYTES)
                .max_wasm_stack(WASM_STACK_BYTES);
            wasmtime::Engine::new(&config).map_err(|e| e.to_string())
        })
        .as_ref()
        .map_err(|e| ModuleError::Invalid(format!("the Wasm engine did not start: {e}")))
}

type Slot = Arc<OnceLock<Result<Arc<Module>, ModuleError>>>;
/// By the hash of the Wasm and whether the module is for profiles.
type Slots = HashMap<([u8; 32], bool), Slot>;

/// Compiles modules, each once per process, and keeps them in a directory as well when it is given one.
#[derive(Clone, Debug, Default)]
pub struct ModuleCache {
    directory: Option<PathBuf>,
    profile: bool,
}

impl ModuleCache {
    /// `directory`: where compiled modules are kept for later processes. It must be one that only this user's
    /// programs write to, since its contents are executed.
    pub fn new(directory: Option<PathBuf>) -> Self {
        Self { directory, profile: false }
    }

    /// The same cache, but the modules out of it also report which function runs. They count as they did, but slower.
    pub fn for_profiles(self, profile: bool) -> Self {
        Self { profile, ..self }
    }

    /// Compiles `wasm`, raw or gzipped, or finds it compiled.
    ///
    /// # Errors
    /// When the IC would not install the module; the message says why.
    pub fn compile(&self, wasm: &[u8]) -> Result<Arc<Module>, ModuleError> {
        static SLOTS: OnceLock<Mutex<Slots>> = OnceLock::new();
        let hash: [u8; 32] = Sha256::digest(wasm).into();
        let key = (hash, self.profile);
        let slot = {
            let mut slots = SLOTS.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
            if slots.len() >= CACHED_MODULES_MAX && !slots.contains_key(&key) {
                slots.clear();
            }
            Slot::clone(slots.entry(key).or_default())
        };
        slot.get_or_init(|| self.compile_uncached(wasm, hash).map(Arc::new)).clone()
    }

    fn compile_uncached(&self, wasm: &[u8], hash: [u8; 32]) -> Result<Module, ModuleError> {
        let engine = engine()?;
        let file = self.directory.as_ref().map(|d| {
            let profile = if self.profile { "-profile" } else { "" };
            let version = env!("CARGO_PKG_VERSION");
            d.join(format!("{}-{version}-{}{profile}.module", hex::encode(hash), instrument::VERSION))
        });
        if let Some((metadata, compiled)) = file.as_ref().and_then(|f| artifact::load(engine, f)) {
            let pre = runtime::linker(engine)?.instantiate_pre(&compiled).map_err(invalid)?;
            return Ok(Module { hash, metadata, wasm: Arc::new(wasm.to_vec()), pre });
        }
        let raw = decompress(wasm)?;
        let (rewritten, metadata) = instrument::instrument(&raw, self.profile)?;
        let compiled = wasmtime::Module::new(engine, &rewritten).map_err(invalid)?;
        let pre = runtime::linker(engine)?.instantiate_pre(&compiled).map_err(invalid)?;
        if let Some(file) = file {
            artifact::store(&file, &metadata, &compiled);
        }
        Ok(Module { hash, metadata, wasm: Arc::new(wasm.to_vec()), pre })
    }
}

fn invalid(error: wasmtime::Error) -> ModuleError {
    ModuleError::Invalid(format!("{error:#}"))
}

fn decompress(wasm: &[u8]) -> Result<Vec<u8>, ModuleError> {
    if !wasm.starts_with(&[0x1f, 0x8b]) {
        return Ok(wasm.to_vec());
    }
    let mut raw = Vec::new();
    flate2::read::GzDecoder::new(wasm)
        .take(WASM_BYTES_MAX + 1)
        .read_to_end(&mut raw)
        .map_err(|e| ModuleError::Invalid(format!("the module does not decompress: {e}")))?;
    if raw.len() as u64 > WASM_BYTES_MAX {
        return Err(ModuleError::Invalid(format!("the module is larger than {WASM_BYTES_MAX} bytes decompressed")));
    }
    Ok(raw)
}
