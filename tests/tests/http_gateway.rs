//! The raw HTTP gateway of the replica: what browsers get from `http_request` and `http_request_update`.
//!
//! PocketIC's own gateway checks certificates and words its errors otherwise, so these run on the project's replica only.

use std::time::Duration;

use candid::Principal;
use icsql_tests::{controller, fixture_wasm, install, on_own_replica, pocket_ic};
use pocket_ic::PocketIc;
use reqwest::blocking::{Client, RequestBuilder, Response};
use reqwest::{Method, StatusCode};

struct Gateway {
    pic: PocketIc,
    canister: Principal,
    port: u16,
    client: Client,
}

impl Gateway {
    /// `None` where the suite does not apply.
    fn start() -> Option<Self> {
        if !on_own_replica() {
            eprintln!("not run: the gateway of a PocketIC server is not this project's");
            return None;
        }
        let mut pic = pocket_ic();
        let canister = install(&pic, fixture_wasm("http"));
        let port = pic.make_live(None).port().expect("a gateway has a port");
        let client = Client::builder().redirect(reqwest::redirect::Policy::none()).no_proxy();
        let client = client.timeout(Duration::from_secs(60)).build().expect("a client");
        Some(Self { pic, canister, port, client })
    }

    /// A request with this host; names need not resolve.
    fn to(&self, method: Method, host: &str, path: &str) -> RequestBuilder {
        let request = self.client.request(method, format!("http://127.0.0.1:{}{path}", self.port));
        request.header("host", format!("{host}:{}", self.port))
    }

    fn host(&self) -> String {
        format!("{}.localhost", self.canister)
    }

    fn get(&self, path: &str) -> Response {
        self.to(Method::GET, &self.host(), path).send().expect(path)
    }
}

/// Status and text of a response.
fn read(response: Response) -> (u16, String) {
    (response.status().as_u16(), response.text().expect("a whole body"))
}

#[test]
fn the_canister_is_named_by_host_or_parameter() {
    let Some(gateway) = Gateway::start() else { return };
    let id = gateway.canister;
    for (host, path) in [
        (format!("{id}.localhost"), "/".to_string()),
        (format!("{id}.raw.localhost"), "/".to_string()),
        ("localhost".to_string(), format!("/?canisterId={id}")),
        ("127.0.0.1".to_string(), format!("/?a=b&canisterId={id}")),
        // The host wins.
        (format!("{id}.localhost"), "/?canisterId=aaaaa-aa".to_string()),
    ] {
        let answer = read(gateway.to(Method::GET, &host, &path).send().unwrap());
        assert_eq!(answer, (200, "home".to_string()), "{host} {path}");
    }
    let nobody = Principal::from_slice(&[1, 2, 3]);
    for (host, path, status, words) in [
        ("localhost".to_string(), "/".to_string(), 400, "?canisterId=<canister-id>".to_string()),
        ("no-canister.localhost".to_string(), "/".to_string(), 400, "no canister is named".to_string()),
        ("localhost".to_string(), "/?canisterId=junk".to_string(), 400, "\"junk\" is no canister id".to_string()),
        (format!("{nobody}.localhost"), "/".to_string(), 404, format!("there is no canister {nobody}")),
    ] {
        let (code, text) = read(gateway.to(Method::GET, &host, &path).send().unwrap());
        assert!(code == status && text.contains(&words), "{host} {path}: {code} {text}");
    }
    let empty = gateway.pic.create_canister();
    let (code, text) = read(gateway.to(Method::GET, &format!("{empty}.localhost"), "/").send().unwrap());
    assert!(code == 404 && text.contains("no Wasm module"), "{code} {text}");
    gateway.pic.stop_canister(id, Some(controller())).unwrap();
    let (code, text) = read(gateway.get("/"));
    assert!(code == 503 && text.contains("is stopped"), "{code} {text}");
}

#[test]
fn requests_arrive_as_they_were_sent() {
    let Some(gateway) = Gateway::start() else { return };
    for method in [Method::POST, Method::PUT, Method::DELETE, Method::PATCH] {
        let request = gateway.to(method.clone(), &gateway.host(), "/echo?x=%20y&x=2").header("x-own", "mine");
        let (code, text) = read(request.body("the body").send().unwrap());
        assert_eq!(code, 200);
        assert!(text.starts_with(&format!("{method} /echo?x=%20y&x=2\ncertificate_version Some(2)\n")), "{text}");
        assert!(text.contains("\nx-own: mine\n") && text.ends_with("\nthe body"), "{text}");
    }
    // An update sees the same, without the certificate's version; each is an update of its own.
    for n in 1..=2 {
        let request = gateway.to(Method::POST, &gateway.host(), "/upgrade?z").body("changes");
        let (code, text) = read(request.send().unwrap());
        assert_eq!(code, 201);
        assert!(text.starts_with("POST /upgrade?z\ncertificate_version None\n"), "{text}");
        assert!(text.ends_with(&format!("\nchanges\nupdate {n}")), "{text}");
    }
    // A body that fits into a message passes, a longer one is refused.
    let most = 2 * 1024 * 1024;
    let send = |path: &str, bytes: usize| {
        read(gateway.to(Method::POST, &gateway.host(), path).body(vec![b'q'; bytes]).send().unwrap())
    };
    assert_eq!(send("/", most).0, 200);
    let (code, text) = send("/", most + 1);
    assert!(code == 413 && text.contains("2097152"), "{code} {text}");
    let (code, text) = send("/upgrade", most);
    assert!(code == 413 && text.contains("as a call"), "{code} {text}");
}

#[test]
fn responses_are_passed_on_as_the_canister_gave_them() {
    let Some(gateway) = Gateway::start() else { return };
    assert_eq!(read(gateway.get("/missing")), (404, "no such page".to_string()));
    assert_eq!(read(gateway.get("/code?418")), (418, "a code".to_string()));
    let moved = gateway.get("/headers");
    assert_eq!(moved.status(), StatusCode::MOVED_PERMANENTLY);
    let cookies: Vec<_> = moved.headers().get_all("set-cookie").iter().collect();
    assert_eq!(cookies, ["a=1", "b=2"]);
    assert_eq!(
        (&moved.headers()["x-own"], &moved.headers()["content-length"]),
        (&"yes".parse().unwrap(), &"5".parse().unwrap())
    );
    assert_eq!(moved.text().unwrap(), "moved");
    let head = gateway.to(Method::HEAD, &gateway.host(), "/").send().unwrap();
    assert_eq!((head.status().as_u16(), head.text().unwrap().as_str()), (200, ""));
    assert_eq!(gateway.get("/big").bytes().unwrap().len(), 2_900_000);
    for (path, words) in [
        ("/trap", "IC0503"),
        ("/code?99", "status code 99"),
        ("/code?101", "status code 101"),
        ("/bad-header", "\"no good\""),
    ] {
        let (code, text) = read(gateway.get(path));
        assert!(code == 502 && text.contains(words), "{path}: {code} {text}");
    }
}

#[test]
fn bodies_come_in_parts() {
    let Some(gateway) = Gateway::start() else { return };
    let whole = gateway.get("/stream").bytes().unwrap();
    // The first part and five more, each larger than half of what a reply may have.
    assert_eq!(whole.len(), 6 * 1_500_000);
    for (part, bytes) in whole.chunks(1_500_000).enumerate() {
        assert!(bytes.iter().all(|b| *b == b'a' + part as u8), "part {part}");
    }
    let head = gateway.to(Method::HEAD, &gateway.host(), "/stream").send().unwrap();
    assert_eq!((head.status().as_u16(), head.bytes().unwrap().len()), (200, 0));
    // What ends before its end is not passed off as whole: a part that fails, and a stream that has none.
    for path in ["/broken", "/endless"] {
        let response = gateway.get(path);
        assert_eq!(response.status(), 200);
        response.bytes().expect_err(path);
    }
    assert_eq!(read(gateway.get("/")), (200, "home".to_string()));
}

#[test]
fn a_gateway_ends_when_it_is_told() {
    let Some(mut gateway) = Gateway::start() else { return };
    assert_eq!(read(gateway.get("/")).0, 200);
    gateway.pic.stop_live();
    let closed = (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        std::net::TcpStream::connect(("127.0.0.1", gateway.port)).is_err()
    });
    assert!(closed, "port {} is still open", gateway.port);
}
