//! Puts, gets, asks by SQL, and meets errors, in a running icsql.

use candid::Principal;
use std::process::ExitCode;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, canister] = &arguments[..] else {
        eprintln!("usage: icsql-example-rust-agent URL CANISTER_ID");
        return ExitCode::from(2);
    };
    let canister = match Principal::from_text(canister) {
        Ok(canister) => canister,
        Err(error) => {
            eprintln!("error: {canister:?} is no canister id: {error}");
            return ExitCode::from(2);
        }
    };
    match icsql_example_rust_agent::session(url, canister).await {
        Ok(lines) => {
            lines.iter().for_each(|line| println!("{line}"));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
