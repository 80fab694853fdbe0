//! Putting code into a canister, and taking it out.

use super::canister::{CallResult, Effect, Installed};
use super::management::{self, Sender};
use super::{Replica, Shared};
use crate::replica::canister::Canister;
use crate::runtime::{Context, Entry, Instance, StableMemory, Trap};
use crate::types::{Cost, ErrorCode, InstallMode, MessageCost, Reject};
use crate::wasm::Module;
use candid::Principal;
use ic_management_canister_types::ChangeDetails;
use std::sync::Arc;

/// Instructions that the IC charges for compiling one operator.
const COMPILATION_INSTRUCTIONS: u64 = 6_000;
/// The metadata section by which a module says that its heap outlives upgrades.
const PERSISTENCE_SECTION: &str = "enhanced-orthogonal-persistence";

impl Replica {
    pub(super) fn install_code(
        &mut self,
        id: Principal,
        mode: InstallMode,
        wasm: &[u8],
        argument: Vec<u8>,
        sender: Sender,
    ) -> Result<(), Reject> {
        let canister = self.canister(&id)?;
        check_controller(canister, &sender.principal())?;
        match (mode, canister.installed.is_some()) {
            (InstallMode::Install, true) => {
                return Err(Reject::new(
                    ErrorCode::CanisterNonEmpty,
                    format!(
                        "Canister {id} cannot be installed because the canister is not empty. Try installing with \
                         mode='reinstall' instead."
                    ),
                ));
            }
            (InstallMode::Upgrade { .. }, false) => {
                return Err(Reject::new(
                    ErrorCode::CanisterWasmModuleNotFound,
                    format!(
                        "Error from Canister {id}: Attempted to upgrade, but the canister contains no Wasm module."
                    ),
                ));
            }
            _ => {}
        }
        let module = self.modules.compile(wasm).map_err(|e| {
            Reject::new(ErrorCode::CanisterInvalidWasm, format!("Error from Canister {id}: Canister's {e}"))
        })?;
        let Some(canister) = self.canisters.get_mut(&id) else { return Err(super::not_found(&id)) };
        if let (InstallMode::Upgrade { keep_heap, .. }, Some(old)) = (mode, &canister.installed) {
            check_persistence(keep_heap, &old.module, &module)?;
        }
        canister.check_cycles(self.shared.config.install_instructions_max)?;
        let mut steps = Steps {
            canister,
            shared: &mut self.shared,
            trace: &mut self.trace,
            used: 0,
            compiled: &module,
            sender: sender.principal(),
        };
        match mode {
            InstallMode::Upgrade { skip_pre_upgrade, keep_heap } => {
                steps.upgrade(skip_pre_upgrade, keep_heap == Some(true), argument)
            }
            InstallMode::Install | InstallMode::Reinstall => steps.install(argument),
        }
        .map_err(|trap| trap.reject(&id))?;
        let (time, change) = (self.shared.time, management::code_deployment(mode, module.hash));
        self.canister_mut(&id)?.note_change(time, sender, change);
        Ok(())
    }

    /// Drops code, heap and stable memory. Calls that the canister works on are rejected.
    pub(super) fn uninstall_code(&mut self, id: Principal, sender: Sender) -> CallResult {
        let time = self.shared.time;
        let canister = self.canister_mut(&id)?;
        canister.installed = None;
        canister.stable = StableMemory::default();
        canister.certified_data.clear();
        canister.global_timer = 0;
        canister.chunks.clear();
        canister.note_change(time, sender, ChangeDetails::CodeUninstall);
        canister.callbacks.clear();
        for context in std::mem::take(&mut canister.contexts).into_values().filter(|c| !c.responded) {
            let reject = Reject::new(
                ErrorCode::CanisterRejectedMessage,
                format!("Canister {id} has been uninstalled while it worked on '{}'", context.method),
            );
            self.respond(context.origin, Err(reject), context.available);
        }
        self.finish_stopping(id);
        Ok(super::management::EMPTY_REPLY.to_vec())
    }
}

/// Refuses whom the canister does not obey.
pub(super) fn check_controller(canister: &Canister, sender: &Principal) -> Result<(), Reject> {
    if canister.is_controller(sender) {
        return Ok(());
    }
    let controllers: Vec<_> = canister.controllers.iter().map(Principal::to_text).collect();
    Err(Reject::new(
        ErrorCode::CanisterInvalidController,
        format!(
            "Only the controllers of the canister {} can control it.\nCanister's controllers: {}\nSender's ID: {sender}",
            canister.id,
            controllers.join(" ")
        ),
    ))
}

/// Refuses an upgrade that would drop the heap of a module that lives in it, or keep that of one that does not.
fn check_persistence(keep_heap: Option<bool>, old: &Module, new: &Module) -> Result<(), Reject> {
    let persistent = |module: &Module| module.metadata.section(PERSISTENCE_SECTION).is_some();
    let problem = match keep_heap {
        None if persistent(old) => {
            "Missing upgrade option: Enhanced orthogonal persistence requires the `wasm_memory_persistence` upgrade option."
        }
        Some(true) if !persistent(new) => {
            "Invalid upgrade option: The `wasm_memory_persistence: opt Keep` upgrade option requires that the new canister \
             module supports enhanced orthogonal persistence."
        }
        _ => return Ok(()),
    };
    Err(Reject::new(ErrorCode::CanisterContractViolation, problem))
}

/// An installation under way. Each step may use the instructions that the earlier ones have left.
struct Steps<'a> {
    canister: &'a mut Canister,
    shared: &'a mut Shared,
    trace: &'a mut Vec<MessageCost>,
    used: u64,
    compiled: &'a Arc<Module>,
    sender: Principal,
}

impl Steps<'_> {
    fn install(&mut self, argument: Vec<u8>) -> Result<(), Trap> {
        self.compilation();
        let stable = std::mem::take(&mut self.canister.stable);
        let certified = std::mem::take(&mut self.canister.certified_data);
        self.finish("canister_init", argument, None).inspect_err(|_| {
            self.canister.stable = stable;
            self.canister.certified_data = certified;
        })
    }

    fn upgrade(&mut self, skip_pre_upgrade: bool, keep_heap: bool, argument: Vec<u8>) -> Result<(), Trap> {
        let Some(mut old) = self.canister.installed.take() else { return Ok(()) };
        let saved = (self.canister.stable.clone(), self.canister.certified_data.clone(), self.canister.global_timer);
        self.compilation();
        let mut upgraded = Ok(());
        if !skip_pre_upgrade && old.module.metadata.exports("canister_pre_upgrade") {
            let entry = Entry::Export("canister_pre_upgrade".into());
            upgraded = self.step(&mut old.instance, &entry, Context::PreUpgrade, Vec::new(), "canister_pre_upgrade");
            self.canister.stable.commit();
        }
        let upgraded = upgraded.and_then(|()| {
            let heap = keep_heap.then(|| old.instance.save().0);
            self.finish("canister_post_upgrade", argument, heap)
        });
        if upgraded.is_err() {
            old.instance.rollback();
            (self.canister.stable, self.canister.certified_data, self.canister.global_timer) = saved;
            self.canister.installed = Some(old);
        }
        upgraded
    }

    /// The steps in the new code: start function and `entry`. On success the code is in place.
    fn finish(&mut self, entry: &str, argument: Vec<u8>, heap: Option<Vec<u8>>) -> Result<(), Trap> {
        let timer = std::mem::take(&mut self.canister.global_timer);
        let installed = self.new_instance(entry, argument, heap);
        match installed {
            Ok(instance) => {
                self.canister.installed = Some(Installed { module: Arc::clone(self.compiled), instance });
                Ok(())
            }
            Err(trap) => {
                self.canister.global_timer = timer;
                Err(trap)
            }
        }
    }

    fn new_instance(&mut self, entry: &str, argument: Vec<u8>, heap: Option<Vec<u8>>) -> Result<Instance, Trap> {
        let mut instance = match heap {
            // The globals are those of the new module.
            Some(heap) => Instance::load(self.compiled, &heap, &[])?,
            None => Instance::new(self.compiled)?,
        };
        if instance.has_start() {
            self.step(&mut instance, &Entry::Start, Context::Start, Vec::new(), "start")?;
            self.commit(&mut instance);
        }
        if self.compiled.metadata.exports(entry) {
            self.step(&mut instance, &Entry::Export(entry.into()), Context::Init, argument, entry)?;
        }
        self.commit(&mut instance);
        Ok(instance)
    }

    fn commit(&mut self, instance: &mut Instance) {
        instance.commit();
        self.canister.stable.commit();
    }

    fn step(
        &mut self,
        instance: &mut Instance,
        entry: &Entry,
        context: Context,
        argument: Vec<u8>,
        name: &str,
    ) -> Result<(), Trap> {
        let limit = self.shared.config.install_instructions_max.saturating_sub(self.used);
        let mut message = self.canister.message(self.shared, context, limit);
        message.argument = argument;
        message.caller = self.sender;
        let executed = self.canister.execute_on(instance, entry, message, Effect::Hold);
        self.used = self.used.saturating_add(executed.cost.instructions);
        self.trace.push(MessageCost { canister: self.canister.id, entry: name.to_owned(), cost: executed.cost });
        executed.result
    }

    fn compilation(&mut self) {
        let compilation = self.compiled.metadata.operators.saturating_mul(COMPILATION_INSTRUCTIONS);
        self.canister.balance = self.canister.balance.saturating_sub(compilation.into());
        let cost = Cost { compilation, ..Cost::default() };
        self.trace.push(MessageCost { canister: self.canister.id, entry: "compilation".into(), cost });
    }
}
