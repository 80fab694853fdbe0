//! Cycles: the balance, what came with the call, and what things cost.

use super::contexts::*;
use super::*;
use crate::cycles;

pub(super) fn link(linker: &mut Linker<Host>) -> Result<(), ModuleError> {
    ic0!(linker, msg_cycles_available, AVAILABLE, |c| -> u64 { narrow(c.message()?.available, c.name) });
    ic0!(linker, msg_cycles_available128, AVAILABLE, |c, to: u32| -> () {
        let value = c.message()?.available;
        c.write(to, &value.to_le_bytes())
    });
    ic0!(linker, msg_cycles_refunded, REFUNDED, |c| -> u64 { narrow(c.message()?.refunded, c.name) });
    ic0!(linker, msg_cycles_refunded128, REFUNDED, |c, to: u32| -> () {
        let value = c.message()?.refunded;
        c.write(to, &value.to_le_bytes())
    });
    ic0!(linker, msg_cycles_accept, AVAILABLE, |c, most: u64| -> u64 { narrow(accept(&mut c, most.into())?, c.name) });
    ic0!(linker, msg_cycles_accept128, AVAILABLE, |c, high: u64, low: u64, to: u32| -> () {
        let accepted = accept(&mut c, wide(high, low))?;
        c.write(to, &accepted.to_le_bytes())
    });
    ic0!(linker, cycles_burn128, BURN, |c, high: u64, low: u64, to: u32| -> () {
        let message = c.message()?;
        let burned = message.balance.min(wide(high, low));
        message.balance -= burned;
        c.write(to, &burned.to_le_bytes())
    });
    ic0!(linker, canister_cycle_balance, NOT_START, |c| -> u64 { narrow(c.message()?.balance, c.name) });
    ic0!(linker, canister_cycle_balance128, NOT_START, |c, to: u32| -> () {
        let value = c.message()?.balance;
        c.write(to, &value.to_le_bytes())
    });
    ic0!(linker, canister_liquid_cycle_balance128, NOT_START, |c, to: u32| -> () {
        let value = c.message()?.balance;
        c.write(to, &value.to_le_bytes())
    });
    cost_functions(linker)
}

fn accept(call: &mut Call<'_, '_>, most: u128) -> Result<u128, Trap> {
    let message = call.message()?;
    let accepted = message.available.min(most);
    message.available -= accepted;
    message.balance = message.balance.saturating_add(accepted);
    Ok(accepted)
}

fn cost_functions(linker: &mut Linker<Host>) -> Result<(), ModuleError> {
    ic0!(linker, cost_call, ANYWHERE, |c, name: u64, payload: u64, to: u32| -> () {
        c.write(to, &cycles::call(name, payload).to_le_bytes())
    });
    ic0!(linker, cost_create_canister, ANYWHERE, |c, to: u32| -> () {
        c.write(to, &cycles::CREATE_CANISTER.to_le_bytes())
    });
    ic0!(linker, cost_http_request, ANYWHERE, |c, request: u64, reply: u64, to: u32| -> () {
        c.write(to, &cycles::http_request(request, reply).to_le_bytes())
    });
    // There are no threshold keys here, so no key's name is known: answer 1, "invalid curve or algorithm", is for
    // curves; 2 says that the key does not exist.
    ic0!(linker, cost_sign_with_ecdsa, ANYWHERE, |c, start: u32, length: u32, curve: u32, _to: u32| -> u32 {
        unknown_key(&mut c, start, length, curve, 1)
    });
    ic0!(linker, cost_sign_with_schnorr, ANYWHERE, |c, start: u32, length: u32, algorithm: u32, _to: u32| -> u32 {
        unknown_key(&mut c, start, length, algorithm, 2)
    });
    ic0!(linker, cost_vetkd_derive_key, ANYWHERE, |c, start: u32, length: u32, curve: u32, _to: u32| -> u32 {
        unknown_key(&mut c, start, length, curve, 1)
    });
    Ok(())
}

fn unknown_key(call: &mut Call<'_, '_>, start: u32, length: u32, kind: u32, kinds: u32) -> Result<u32, Trap> {
    call.charge_bytes(length.into())?;
    call.read(start, length)?;
    Ok(if kind < kinds { 2 } else { 1 })
}
