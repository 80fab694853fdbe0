//! Rewrites a canister's module so that it counts its instructions and reports the heap pages it writes.
//!
//! # What is added
//! - A global, the **counter**, holds the instructions that the message may still use. A function is cut into
//!   basic blocks at `loop`, `if`, `else`, `end`, `br`, `br_if`, `br_table`, `return`, `unreachable` and the tail
//!   calls; the cutting operator belongs to the block that it ends. The weight of a block is taken from the
//!   counter when the block is entered. At the blocks that can be entered again without bound (a function's
//!   first, which costs one more, and a loop's body) the counter is also checked.
//! - A second memory, the **marks**: a byte per 4 KiB page of the heap, 1 when the message has reported the page.
//!   Before each store the marks of its page and of the next are read, and unless both are set the host is told,
//!   which saves the pages' bytes. The next page is included since a store can straddle, and since it makes one
//!   addition unnecessary for offsets below a page; reporting a page that is not then written is harmless.
//! - Bulk operations call the host with their range and length before they run.
//! - Memory, table, mutable globals and the start function are exported under names of our own. The start
//!   section goes: the host decides when that function runs.
//! - For profiles only: each function tells the host that it was entered, each caller that it has control again.
//!
//! Nothing that is added is counted.

use super::function::{Body, HOST_FUNCTIONS, HOST_FUNCTIONS_UNPROFILED, Scratch, charges};
use super::{ModuleError, module::Metadata};
use wasm_encoder::reencode::{self, Reencode};
use wasm_encoder::{self as enc, ValType};
use wasmparser::{ExternalKind, Operator, Parser, Payload, TypeRef, Validator, WasmFeatures};

/// Bumped whenever the same input gives another output; part of the key of the caches.
pub(super) const VERSION: u32 = 1;

/// Import module of the functions that instrumented code calls.
pub(crate) const HOST_MODULE: &str = "icsql";
/// Export: the canister's memory, or an empty one.
pub(crate) const HEAP: &str = "icsql:heap";
/// Export: the memory of marks.
pub(crate) const MARKS: &str = "icsql:marks";
/// Export: the instructions left, a mutable `i64`.
pub(crate) const COUNTER: &str = "icsql:counter";
/// Export: a mutable `i32`, not 0 after an operation that changes tables or drops a segment.
pub(crate) const TABLES_CHANGED: &str = "icsql:tables_changed";
/// Export: the table that callbacks are taken from, if the canister has a table.
pub(crate) const TABLE: &str = "icsql:table";
/// Export: the start function, if the canister has one.
pub(crate) const START: &str = "icsql:start";

/// Name of the export of the canister's mutable global with this position among its mutable globals.
pub(crate) fn global_export(index: u32) -> String {
    format!("icsql:global{index}")
}

/// A mark for each page of a 4 GiB heap, and Wasm pages come whole: one more holds the mark past the last page.
const MARKS_PAGES: u64 = (1 << 20) / 65_536 + 1;

/// What the IC's execution environment accepts of WebAssembly, 32-bit memories only.
fn features() -> WasmFeatures {
    WasmFeatures::MUTABLE_GLOBAL
        | WasmFeatures::SATURATING_FLOAT_TO_INT
        | WasmFeatures::SIGN_EXTENSION
        | WasmFeatures::REFERENCE_TYPES
        | WasmFeatures::CALL_INDIRECT_OVERLONG
        | WasmFeatures::MULTI_VALUE
        | WasmFeatures::BULK_MEMORY
        | WasmFeatures::BULK_MEMORY_OPT
        | WasmFeatures::SIMD
        | WasmFeatures::TAIL_CALL
        | WasmFeatures::FLOATS
        | WasmFeatures::EXTENDED_CONST
}

/// Renumbers functions: the host's imports come after the canister's.
struct Renumber {
    imported: u32,
    host_functions: u32,
}

impl Reencode for Renumber {
    type Error = std::convert::Infallible;

    fn function_index(&mut self, function: u32) -> Result<u32, reencode::Error<Self::Error>> {
        Ok(if function < self.imported { function } else { function + self.host_functions })
    }
}

fn broken(error: impl std::fmt::Display) -> ModuleError {
    ModuleError::Invalid(error.to_string())
}

/// Rewrites `wasm`. Refuses what does not validate, and what the IC refuses: imports from elsewhere than `ic0`,
/// imported memories and the like, more than one memory, exports that are reserved or given twice. With `profile` the
/// module also reports which function runs, and the metadata holds the functions' names.
pub(super) fn instrument(wasm: &[u8], profile: bool) -> Result<(Vec<u8>, Metadata), ModuleError> {
    Validator::new_with_features(features()).validate_all(wasm).map_err(broken)?;
    let mut module = Rewriter { profile, ..Rewriter::default() };
    for payload in Parser::new(0).parse_all(wasm) {
        module.payload(payload.map_err(broken)?)?;
    }
    module.finish()
}

#[derive(Default)]
struct Rewriter {
    profile: bool,
    metadata: Metadata,
    types: enc::TypeSection,
    type_count: u32,
    /// Number of parameters of each type.
    type_params: Vec<u32>,
    imports: enc::ImportSection,
    imported: u32,
    functions: enc::FunctionSection,
    /// Type of each function that is not imported.
    function_types: Vec<u32>,
    tables: enc::TableSection,
    table_count: u32,
    memories: enc::MemorySection,
    memory_count: u32,
    globals: enc::GlobalSection,
    global_count: u32,
    mutable_globals: Vec<u32>,
    exports: enc::ExportSection,
    elements: enc::ElementSection,
    data_count: Option<u32>,
    code: enc::CodeSection,
    data: enc::DataSection,
    start: Option<u32>,
    bodies: usize,
}

impl Rewriter {
    fn renumber(&self) -> Renumber {
        Renumber { imported: self.imported, host_functions: self.host_functions() }
    }

    fn host_functions(&self) -> u32 {
        if self.profile { HOST_FUNCTIONS.len() as u32 } else { HOST_FUNCTIONS_UNPROFILED }
    }

    fn payload(&mut self, payload: Payload<'_>) -> Result<(), ModuleError> {
        match payload {
            Payload::TypeSection(section) => {
                for group in section.clone() {
                    for ty in group.map_err(broken)?.types() {
                        let function = match &ty.composite_type.inner {
                            wasmparser::CompositeInnerType::Func(f) => f,
                            _ => return Err(broken("only function types are supported")),
                        };
                        self.type_params.push(function.params().len() as u32);
                        self.type_count += 1;
                    }
                }
                self.renumber().parse_type_section(&mut self.types, section).map_err(broken)?;
            }
            Payload::ImportSection(section) => {
                for import in section.clone().into_imports() {
                    let import = import.map_err(broken)?;
                    let TypeRef::Func(ty) = import.ty else {
                        return Err(ModuleError::Import { module: import.module.into(), name: import.name.into() });
                    };
                    if import.module != "ic0" {
                        return Err(ModuleError::Import { module: import.module.into(), name: import.name.into() });
                    }
                    self.imports.import(import.module, import.name, enc::EntityType::Function(ty));
                    self.metadata.reads_certificate |= import.name.starts_with("data_certificate_");
                    if self.profile {
                        self.metadata.name_function(self.imported, format!("ic0.{}", import.name));
                    }
                    self.imported += 1;
                }
            }
            Payload::FunctionSection(section) => {
                for ty in section {
                    let ty = ty.map_err(broken)?;
                    self.functions.function(ty);
                    self.function_types.push(ty);
                }
            }
            Payload::TableSection(section) => {
                self.table_count = section.count();
                self.renumber().parse_table_section(&mut self.tables, section).map_err(broken)?;
            }
            Payload::MemorySection(section) => {
                self.memory_count = section.count();
                self.renumber().parse_memory_section(&mut self.memories, section).map_err(broken)?;
            }
            Payload::GlobalSection(section) => {
                for (index, global) in section.clone().into_iter().enumerate() {
                    if global.map_err(broken)?.ty.mutable {
                        self.mutable_globals.push(index as u32);
                    }
                }
                self.global_count = section.count();
                self.renumber().parse_global_section(&mut self.globals, section).map_err(broken)?;
            }
            Payload::ExportSection(section) => {
                for export in section {
                    let export = export.map_err(broken)?;
                    if matches!(export.kind, ExternalKind::Func) {
                        self.metadata.add_export(export.name)?;
                        if export.name.starts_with("canister_") {
                            let index = self.renumber().function_index(export.index).map_err(broken)?;
                            self.exports.export(export.name, enc::ExportKind::Func, index);
                        }
                    }
                }
            }
            Payload::StartSection { func, .. } => self.start = Some(func),
            Payload::ElementSection(section) => {
                self.renumber().parse_element_section(&mut self.elements, section).map_err(broken)?;
            }
            Payload::DataCountSection { count, .. } => self.data_count = Some(count),
            Payload::DataSection(section) => {
                self.renumber().parse_data_section(&mut self.data, section).map_err(broken)?;
            }
            Payload::CodeSectionEntry(body) => self.body(&body)?,
            Payload::CustomSection(section) => {
                if let (true, wasmparser::KnownCustom::Name(names)) = (self.profile, section.as_known()) {
                    self.names(names);
                }
                self.metadata.add_custom_section(section.name(), section.data());
            }
            Payload::TagSection(_) => return Err(broken("exceptions are not supported")),
            _ => {}
        }
        Ok(())
    }

    /// Takes the functions' names; a name section that cannot be read is as good as none.
    fn names(&mut self, names: wasmparser::NameSectionReader<'_>) {
        for subsection in names.into_iter().map_while(Result::ok) {
            if let wasmparser::Name::Function(functions) = subsection {
                for naming in functions.into_iter().map_while(Result::ok) {
                    if naming.index >= self.imported {
                        let name = format!("{:#}", rustc_demangle::demangle(naming.name));
                        self.metadata.name_function(naming.index, name);
                    }
                }
            }
        }
    }

    fn body(&mut self, body: &wasmparser::FunctionBody<'_>) -> Result<(), ModuleError> {
        let ty = self.function_types.get(self.bodies).copied().unwrap_or(0);
        let index = self.imported + self.bodies as u32;
        self.bodies += 1;
        let params = self.type_params.get(ty as usize).copied().unwrap_or(0);
        let operators: Vec<Operator<'_>> =
            body.get_operators_reader().map_err(broken)?.into_iter().collect::<Result<_, _>>().map_err(broken)?;
        self.metadata.operators += operators.len() as u64;
        let mut renumber = self.renumber();
        let mut locals = Vec::new();
        let mut local_count = params;
        for pair in body.get_locals_reader().map_err(broken)? {
            let (count, ty) = pair.map_err(broken)?;
            local_count += count;
            locals.push((count, renumber.val_type(ty).map_err(broken)?));
        }
        let scratch = Scratch::new(&operators, local_count, &mut locals);
        let depth = self.profile.then(|| {
            let local = params + locals.iter().map(|(count, _)| count).sum::<u32>();
            locals.push((1, ValType::I32));
            local
        });
        let mut writer = Body {
            function: enc::Function::new(locals),
            scratch,
            counter: self.global_count,
            tables_changed: self.global_count + 1,
            imported: self.imported,
            depth,
        };
        writer.entered(index);
        let charges = charges(&operators);
        let mut next = charges.iter().peekable();
        for (position, operator) in operators.into_iter().enumerate() {
            while let Some(charge) = next.next_if(|c| c.position == position) {
                writer.charge(charge);
            }
            writer.before(&operator);
            let grows = matches!(operator, Operator::MemoryGrow { .. });
            let calls = matches!(operator, Operator::Call { .. } | Operator::CallIndirect { .. });
            writer.function.instruction(&renumber.instruction(operator).map_err(broken)?);
            if grows {
                writer.after_grow();
            }
            if calls {
                writer.left(0);
            }
        }
        self.code.function(&writer.function);
        Ok(())
    }

    fn finish(mut self) -> Result<(Vec<u8>, Metadata), ModuleError> {
        if self.memory_count > 1 {
            return Err(broken("a canister has one memory at most"));
        }
        for (name, params, results) in HOST_FUNCTIONS.into_iter().take(self.host_functions() as usize) {
            self.types.ty().function(params.iter().copied(), results.iter().copied());
            self.imports.import(HOST_MODULE, name, enc::EntityType::Function(self.type_count));
            self.type_count += 1;
        }
        let limits = |minimum: u64| enc::MemoryType {
            minimum,
            maximum: Some(minimum),
            memory64: false,
            shared: false,
            page_size_log2: None,
        };
        if self.memory_count == 0 {
            self.memories.memory(limits(0));
        }
        self.memories.memory(limits(MARKS_PAGES));
        let global = |val_type| enc::GlobalType { val_type, mutable: true, shared: false };
        self.globals.global(global(ValType::I64), &enc::ConstExpr::i64_const(0));
        self.globals.global(global(ValType::I32), &enc::ConstExpr::i32_const(0));
        self.exports.export(HEAP, enc::ExportKind::Memory, 0);
        self.exports.export(MARKS, enc::ExportKind::Memory, 1);
        self.exports.export(COUNTER, enc::ExportKind::Global, self.global_count);
        self.exports.export(TABLES_CHANGED, enc::ExportKind::Global, self.global_count + 1);
        for (position, index) in self.mutable_globals.iter().enumerate() {
            self.exports.export(&global_export(position as u32), enc::ExportKind::Global, *index);
        }
        self.metadata.mutable_globals = self.mutable_globals.len() as u32;
        if self.table_count > 0 {
            self.exports.export(TABLE, enc::ExportKind::Table, 0);
        }
        if let Some(start) = self.start {
            let index = self.renumber().function_index(start).map_err(broken)?;
            self.exports.export(START, enc::ExportKind::Func, index);
        }
        let mut out = enc::Module::new();
        out.section(&self.types).section(&self.imports).section(&self.functions).section(&self.tables);
        out.section(&self.memories).section(&self.globals).section(&self.exports).section(&self.elements);
        if let Some(count) = self.data_count {
            out.section(&enc::DataCountSection { count });
        }
        out.section(&self.code).section(&self.data);
        Ok((out.finish(), self.metadata))
    }
}
