//! The clients that people have, unmodified, against the replica's interface of the IC: icp-cli, the JavaScript SDK, and
//! the Rust agent. All check certificates and signatures.

use icsql_tests::{fits, icsql_wasm, on_own_replica, replica_binary, root};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Where the project's `icp.yaml` has the replica.
const CONFIGURED: &str = "http://127.0.0.1:8008";

/// Whether the clients are there. They are installed where they are missing; where npm's registry cannot be reached either,
/// the suite says so and is not run.
fn installed() -> bool {
    static INSTALLED: OnceLock<bool> = OnceLock::new();
    *INSTALLED.get_or_init(|| {
        if !on_own_replica() {
            eprintln!("not run: these clients reach the project's own replica only");
            return false;
        }
        let setup = Command::new(root().join("scripts/setup")).args(["icp", "js"]).output().expect("bash runs");
        if setup.status.success() {
            return true;
        }
        let ping = Command::new("npm").args(["ping", "--fetch-retries=0", "--fetch-timeout=10000"]).output();
        let reached = ping.map_or(true, |ping| ping.status.success());
        assert!(!reached, "scripts/setup icp js: {}", text(&setup));
        eprintln!("not run: npm's registry cannot be reached, and icp-cli or the JavaScript SDK is not installed");
        false
    })
}

/// What a program said, whole.
fn text(output: &Output) -> String {
    [&output.stdout[..], &output.stderr].map(String::from_utf8_lossy).concat()
}

/// A replica with the IC's interface, a project of icp-cli that reaches it, and an empty home; gone with this value.
struct Network {
    replica: Child,
    url: String,
    folder: PathBuf,
}

impl Network {
    fn start(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("icsql-clients-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder");
        let file = folder.join("port");
        let mut command = Command::new(replica_binary());
        let replica =
            command.args(["--ic", "--ttl", "300", "--port-file"]).arg(&file).spawn().expect("the replica runs");
        let deadline = Instant::now() + Duration::from_secs(60);
        let port = loop {
            match std::fs::read_to_string(&file) {
                Ok(text) if text.ends_with('\n') => break text.trim().to_owned(),
                _ => assert!(Instant::now() < deadline, "the replica does not start"),
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let network = Self { replica, url: format!("http://127.0.0.1:{port}"), folder };
        network.build(&icsql_wasm());
        network
    }

    /// Makes the project's own `icp.yaml` build this Wasm, for this replica.
    fn build(&self, wasm: &[u8]) {
        let yaml = std::fs::read_to_string(root().join("icp.yaml")).expect("icp.yaml");
        let (url, build) = (format!("url: {CONFIGURED}"), "command: scripts/build");
        assert!(yaml.contains(&url) && yaml.contains(build), "icp.yaml has not {url:?} and {build:?}:\n{yaml}");
        let copy = r#"command: sh -c 'cp icsql.wasm "$ICP_WASM_OUTPUT_PATH"'"#;
        let yaml = yaml.replace(&url, &format!("url: {}", self.url)).replace(build, copy);
        std::fs::write(self.folder.join("icp.yaml"), yaml).expect("icp.yaml is written");
        std::fs::write(self.folder.join("icsql.wasm"), wasm).expect("the Wasm is written");
    }

    /// Runs a command of icp-cli in the environment `replica` and answers what it printed; `good` is how it has to end.
    fn icp(&self, arguments: &[&str], good: bool) -> String {
        icp(&self.folder, "replica", arguments, good)
    }

    /// Deploys icsql, which then everybody controls, and answers its id.
    fn deploy(&self) -> String {
        self.icp(&["deploy"], true);
        let status = self.icp(&["canister", "status", "icsql"], true);
        let id = status.lines().find_map(|line| line.trim().strip_prefix("Canister Id: "));
        id.unwrap_or_else(|| panic!("no id in {status}")).to_owned()
    }
}

/// Runs a command of icp-cli in a project's folder, with an empty home of its own.
fn icp(project: &Path, environment: &str, arguments: &[&str], good: bool) -> String {
    let tools = root().join(".tools/bin");
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("icp")
        .args(arguments)
        .env("PATH", format!("{}:{path}", tools.display()))
        .env("ICP_ENVIRONMENT", environment)
        .env("ICP_CLI_NETWORK_LAUNCHER_PATH", replica_binary())
        .env("ICP_HOME", project.join("home"))
        .env("HOME", project.join("home"))
        .env("DO_NOT_TRACK", "1")
        .current_dir(project)
        .output()
        .expect("icp runs");
    let said = text(&output);
    assert_eq!(output.status.success(), good, "icp {}: {said}", arguments.join(" "));
    said
}

impl Drop for Network {
    fn drop(&mut self) {
        let _ = self.replica.kill();
        let _ = self.replica.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn holds(said: &str, words: &str) {
    assert!(said.contains(words), "not {words:?} but: {said}");
}

/// The Wasm with a custom section more, which is another module to everybody.
fn changed(wasm: &[u8]) -> Vec<u8> {
    let mut changed = wasm.to_vec();
    changed.write_all(b"\x00\x05\x04next").expect("memory");
    changed
}

fn module_hash(status: &str) -> &str {
    status.lines().find_map(|line| line.trim().strip_prefix("Module hash: ")).unwrap_or_else(|| panic!("{status}"))
}

#[test]
fn icp_deploys_calls_and_upgrades() {
    if !installed() {
        return;
    }
    let network = Network::start("icp");
    holds(&network.icp(&["network", "ping", "replica"], true), "healthy");
    network.deploy();
    let call = |method: &str, argument: &str| network.icp(&["canister", "call", "icsql", method, argument], true);
    let query =
        |method: &str, argument: &str| network.icp(&["canister", "call", "--query", "icsql", method, argument], true);
    holds(&call("kv_put", r#"("greeting", "hello", null)"#), "Ok = record { version = ");
    holds(&query("kv_get", r#"("greeting")"#), r#"Ok = opt "hello""#);
    holds(&call("kv_put", r#"("", "no key", null)"#), "InvalidArgument");
    let before = network.icp(&["canister", "status", "icsql"], true);
    holds(&before, "Status: Running");
    // The same project, built anew.
    network.build(&changed(&icsql_wasm()));
    network.icp(&["deploy"], true);
    let after = network.icp(&["canister", "status", "icsql"], true);
    assert_ne!(module_hash(&before), module_hash(&after));
    holds(&query("kv_get", r#"("greeting")"#), r#"Ok = opt "hello""#);
    network.icp(&["canister", "logs", "icsql"], true);
    network.icp(&["canister", "stop", "icsql"], true);
    holds(&network.icp(&["canister", "call", "icsql", "kv_count", "()"], false), "IC0508");
    network.icp(&["canister", "start", "icsql"], true);
    holds(&query("kv_count", "()"), "Ok = 1");
}

/// The commands of icp-cli in the README, each with the answer that stands below it as comments; none if none does.
fn session() -> Vec<(String, Option<String>)> {
    let readme = std::fs::read_to_string(root().join("README.md")).expect("README.md");
    let session = readme.split("## A session").nth(1).and_then(|rest| rest.split("```").nth(1)).expect("a session");
    let mut commands: Vec<(String, Option<String>)> = Vec::new();
    for line in session.lines().skip(1).filter(|line| !line.is_empty()) {
        match (line.strip_prefix("# "), commands.last_mut()) {
            (Some(answer), Some((_, expected))) => {
                let expected = expected.get_or_insert_default();
                expected.push_str(answer);
                expected.push('\n');
            }
            (None, _) if line.starts_with("icp ") => commands.push((line.to_owned(), None)),
            (None, Some((command, _))) => {
                command.push('\n');
                command.push_str(line);
            }
            _ => panic!("not a command: {line}"),
        }
    }
    commands
}

#[test]
fn the_session_of_the_readme_goes_as_it_says() {
    if !installed() {
        return;
    }
    let network = Network::start("readme");
    let mut compared = 0;
    for (command, expected) in session() {
        let command = command.strip_prefix("icp ").expect("a command of icp-cli");
        let said = network.icp(&words(command), true);
        if let Some(expected) = expected {
            // It warns that the root key is not verified, on stderr.
            let said: Vec<&str> = said.lines().filter(|line| !line.starts_with("WARN ")).collect();
            let said = said.join("\n");
            assert!(fits(&expected, &said), "icp {command}\nshould say {expected}\nand says {said}");
            compared += 1;
        }
    }
    assert_eq!(compared, 7);
}

/// A command's words, of which some stand in single quotes; what comes behind a `#` is a comment.
fn words(command: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = command.trim_start();
    while !rest.is_empty() && !rest.starts_with('#') {
        let (word, after) = match rest.strip_prefix('\'') {
            Some(quoted) => quoted.split_once('\'').expect("a closing quote"),
            None => rest.split_once([' ', '\n']).unwrap_or((rest, "")),
        };
        words.push(word);
        rest = after.trim_start();
    }
    words
}

#[test]
fn the_examples_of_clients_run() {
    if !installed() {
        return;
    }
    let network = Network::start("examples");
    let id = network.deploy();
    let script: &Path = &root().join("examples/js/main.mjs");
    let run = || {
        let output = Command::new("node").arg(script).args([&network.url, &id]).output().expect("node runs");
        let said = text(&output);
        assert!(output.status.success(), "{said}");
        said
    };
    let said = run();
    for words in [
        "get: hello from JavaScript\n",
        "InvalidArgument, key: it is empty",
        "migrations applied: 1\n",
        "batch: 1,1,1 rows inserted\n",
        r#"execute: [{"title":"The Rust Programming Language","year":2018,"recent":1}]"#,
        "page: The Art of Computer Programming 1, The C Programming Language (Rows)\n",
        "page: Structure and Interpretation of Computer Programs (End)\n",
        r#"as a stranger: [{"title":"Structure and Interpretation of Computer Programs","year":1985},"#,
        "Sqlite, code 2067 (constraint, unique): UNIQUE constraint failed: js_book.isbn\n",
        "Sqlite, code 1 at byte 7: no such column: titel\n",
        "BudgetExceeded, 1000000 instructions\n",
        "InvalidArgument, params: year must be integer\n",
        "Forbidden, for controllers of the canister, and principals with the role reader, writer or admin\n",
        "rejected, IC0406",
    ] {
        holds(&said, words);
    }
    // It can be run again.
    let again = run();
    holds(&again, "migrations applied: none, it was done before\n");
    holds(&again, "batch: 1,1,1 rows inserted\n");

    let canister = candid::Principal::from_text(&id).expect("an id");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let said = runtime.block_on(icsql_example_rust_agent::session(&network.url, canister)).expect("the session");
    let said = said.join("\n");
    for words in [
        r#"get: Some("hello from Rust")"#,
        "not there: None",
        "InvalidArgument, key: it is empty",
        r#"SQL: [[Text("hello from Rust"), Integer(15)]] in "#,
        "SQL with a wrong column: Sqlite, code 1 at byte 7: no such column: valeu",
    ] {
        holds(&said, words);
    }
    // One database.
    let both = network.icp(&["canister", "call", "--query", "icsql", "kv_count", "()"], true);
    holds(&both, "Ok = 2");
}

/// A network that icp-cli has started, stopped with this value.
struct Managed(PathBuf);

impl Drop for Managed {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            icp(&self.0, "local", &["network", "stop"], true);
        }
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn icp_starts_the_replica_as_its_own_network() {
    if !installed() {
        return;
    }
    let folder = std::env::temp_dir().join(format!("icsql-clients-managed-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("icsql.wasm"), icsql_wasm()).expect("the Wasm is written");
    let yaml = "canisters:\n  - name: icsql\n    build:\n      steps:\n        - type: pre-built\n          path: icsql.wasm\n\
        networks:\n  - name: local\n    mode: managed\n    gateway:\n      port: 0\n";
    std::fs::write(folder.join("icp.yaml"), yaml).expect("icp.yaml is written");
    // Ready when it ends: icp-cli has read status.json and created canisters of its own by the cycles ledger.
    holds(&icp(&folder, "local", &["network", "start", "-d"], true), "Network started on port");
    let network = Managed(folder);
    let run = |arguments: &[&str]| icp(&network.0, "local", arguments, true);
    holds(&run(&["network", "status"]), "Candid UI Principal: ");
    run(&["deploy"]);
    holds(&run(&["canister", "call", "icsql", "kv_put", r#"("a", "b", null)"#]), "Ok = record { version = ");
    holds(&run(&["canister", "call", "--query", "icsql", "kv_get", r#"("a")"#]), r#"Ok = opt "b""#);
}
