//! Calls methods of other canisters, to show what they see of a canister as the caller and what an await commits.

use std::cell::Cell;

use candid::Principal;
use ic_cdk::call::{Call, CallFailed};

thread_local! {
    static COUNTER: Cell<u64> = const { Cell::new(0) };
}

async fn call(canister: Principal, method: &str, argument: &[u8]) -> Result<Vec<u8>, CallFailed> {
    Call::unbounded_wait(canister, method).with_raw_args(argument).await.map(|response| response.into_bytes())
}

/// Passes the argument and the reply through as they are; a reject becomes its text.
#[ic_cdk::update]
async fn call_raw(canister: Principal, method: String, argument: Vec<u8>) -> Result<Vec<u8>, String> {
    call(canister, &method, &argument).await.map_err(|failure| failure.to_string())
}

/// Adds 1 to the counter, awaits the call, adds 100 and traps: only the 1 stays.
#[ic_cdk::update]
async fn trap_after_call(canister: Principal, method: String, argument: Vec<u8>) {
    COUNTER.set(COUNTER.get() + 1);
    let _ = call(canister, &method, &argument).await;
    COUNTER.set(COUNTER.get() + 100);
    ic_cdk::trap("trapped after the call");
}

/// Calls a method that no canister has and answers the code and message of the reject.
#[ic_cdk::update]
async fn call_missing(canister: Principal) -> Result<(), (u32, String)> {
    match call(canister, "no_such_method", &[]).await {
        Ok(_) => Ok(()),
        Err(CallFailed::CallRejected(reject)) => Err((reject.raw_reject_code(), reject.reject_message().to_string())),
        Err(failure) => Err((0, failure.to_string())),
    }
}

#[ic_cdk::query]
fn counter() -> u64 {
    COUNTER.get()
}
