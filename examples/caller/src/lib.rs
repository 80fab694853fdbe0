//! A canister that keeps its data in icsql, another canister.

use std::cell::Cell;

use candid::utils::ArgumentEncoder;
use candid::{CandidType, Deserialize, Principal};
use ic_cdk::call::{Call, CallErrorExt};
use icsql_types::method::{KV_GET, KV_PUT, Method, SQL_QUERY};
use icsql_types::{Answer, Error, Params, Statement, Value};

thread_local! {
    static DATABASE: Cell<Principal> = const { Cell::new(Principal::anonymous()) };
}

/// Why a call of icsql gave nothing.
#[derive(CandidType, Deserialize, Debug)]
pub enum Failure {
    /// icsql answered that it did not do it, and why. Nothing was changed.
    Refused(Error),
    /// The call did not get through. Nothing was changed.
    NotSent(String),
    /// The answer is missing: a write may have happened or not. Writing the same value again is safe.
    Unknown(String),
}

/// Where icsql is. Passed at install and at each upgrade.
#[ic_cdk::init]
fn init(database: Principal) {
    DATABASE.set(database);
}

#[ic_cdk::post_upgrade]
fn post_upgrade(database: Principal) {
    DATABASE.set(database);
}

/// Calls a method of icsql. The wait is bounded, so that this canister can always be stopped and upgraded.
async fn call<A: ArgumentEncoder, R>(method: &Method<A, Answer<R>>, arguments: A) -> Result<R, Failure>
where
    R: CandidType + for<'a> Deserialize<'a>,
{
    let sent = Call::bounded_wait(DATABASE.get(), method.name).with_args(&arguments).await;
    let response = sent.map_err(|failure| match failure.is_clean_reject() {
        true => Failure::NotSent(failure.to_string()),
        false => Failure::Unknown(failure.to_string()),
    })?;
    let answer: Answer<R> = response.candid().map_err(|error| Failure::Unknown(error.to_string()))?;
    answer.map_err(Failure::Refused)
}

/// Remembers a text under a name; the answer is its version. icsql must have given this canister the role writer.
#[ic_cdk::update]
async fn remember(name: String, text: String) -> Result<u64, Failure> {
    Ok(call(&KV_PUT, (name, text, None)).await?.version)
}

/// The text under a name. An update, since it calls another canister.
#[ic_cdk::update]
async fn recall(name: String) -> Result<Option<String>, Failure> {
    call(&KV_GET, (name,)).await
}

/// The names that begin with a text, in order; the first thousand. SQL reads what `remember` wrote.
#[ic_cdk::update]
async fn names(prefix: String) -> Result<Vec<String>, Failure> {
    let statement = Statement {
        // U+10FFFF sorts behind every other character, so that the range is an index's.
        sql: "SELECT key FROM kv WHERE key >= ?1 AND key < ?1 || char(0x10FFFF) ORDER BY key".into(),
        params: Some(Params::Positional(vec![Value::Text(prefix)])),
    };
    let found = call(&SQL_QUERY, (statement, None)).await?;
    let name = |row: Vec<Value>| match row.into_iter().next() {
        Some(Value::Text(name)) => Some(name),
        _ => None,
    };
    Ok(found.rows.into_iter().filter_map(name).collect())
}
