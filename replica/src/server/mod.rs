//! The PocketIC protocol over HTTP: many instances, each a replica of its own behind a lock of its own.
//!
//! Every request is answered when its work is done, so clients never poll. Two endpoints are the replica's own:
//! `GET /instances/{i}/icsql/cost` answers the costs of the messages since the last call began, and
//! `POST /instances/{i}/icsql/fault` with a [`Fault`](crate::Fault) as JSON sets what the next message suffers.
//!
//! With [`ServerConfig::ic`] instance 0 is there from the start and is also served through the IC's HTTP interface.

mod gateway;
mod instance;
mod launcher;
mod protocol;
mod saver;

use crate::gateway as raw_gateway;
use crate::http::{self, Keys, Node};
use crate::replica::Replica;
use crate::state::{StateDir, StateError};
use crate::types::Config;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use instance::Answer;
pub(crate) use instance::Instance;
use protocol::{ApiError, CreateHttpGatewayResponse, CreateInstanceResponse, InitialTime, InstanceConfig};
use saver::Saver;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::io::Read;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Time between two rounds of an instance that progresses by itself.
const ROUND: Duration = Duration::from_millis(100);
/// Time for the last answers when the server ends.
const GRACE: Duration = Duration::from_secs(2);
/// Bytes of a blob after decompression.
const BLOB_BYTES_MAX: u64 = 8 << 30;

/// How the server runs.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// What every instance starts with.
    pub replica: Config,
    /// The server ends when no request came for this long; `None`: never.
    pub ttl: Option<Duration>,
    /// The server ends after this long, whatever happens.
    pub hard_ttl: Option<Duration>,
    /// The server also speaks the IC's HTTP interface, for an instance that is there from the start, whose clock
    /// follows the machine's and whose rounds run by themselves.
    pub ic: Option<IcConfig>,
}

/// How the IC's HTTP interface is served.
#[derive(Clone, Debug)]
pub struct IcConfig {
    /// Decides the root key and the node's key. Who knows it can forge certificates.
    pub key_seed: [u8; 32],
    /// Where the replica's state is kept, so that it outlives the process; `None`: nowhere. See [`StateDir`]. It is saved
    /// within a second or two of every change, and when the server ends. A process that is killed loses what came after
    /// the last save, and nothing else. A directory that has a state keeps its keys.
    pub state_dir: Option<PathBuf>,
    /// A directory that gets a file `status.json` once the replica is ready, as icp-cli wants it from a network launcher.
    pub status_dir: Option<PathBuf>,
}

impl Default for IcConfig {
    /// The same keys every time, which everybody knows: for development.
    fn default() -> Self {
        Self { key_seed: *b"icsql replica: keys for all to s", state_dir: None, status_dir: None }
    }
}

struct Server {
    config: ServerConfig,
    /// By number; `None` once deleted.
    instances: Mutex<Vec<Option<Arc<Instance>>>>,
    blobs: Mutex<HashMap<[u8; 32], Arc<Vec<u8>>>>,
    gateways: Mutex<gateway::Gateways>,
    started: Instant,
    /// Milliseconds after `started` at which the last request ended.
    last_request: AtomicU64,
    running: AtomicUsize,
}

/// Answers requests on `listener` until the configured time is over, or `stop` is ready.
///
/// # Errors
/// When the socket fails, or the state cannot be loaded or saved.
pub async fn serve(
    listener: tokio::net::TcpListener,
    config: ServerConfig,
    stop: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let server = Arc::new(Server {
        config,
        instances: Mutex::default(),
        blobs: Mutex::default(),
        gateways: Mutex::default(),
        started: Instant::now(),
        last_request: AtomicU64::new(0),
        running: AtomicUsize::new(0),
    });
    let mut app = Router::new()
        .route("/status", get(|| async { StatusCode::OK }))
        .route("/instances", get(list).post(create))
        .route("/instances/", get(list).post(create))
        .route("/instances/{id}", delete(remove))
        .route("/instances/{id}/{*path}", get(read).post(write))
        .route("/blobstore/", post(upload))
        .route("/blobstore", post(upload))
        .route("/http_gateway", post(create_gateway))
        .route("/http_gateway/{id}/stop", post(stop_gateway))
        .layer(DefaultBodyLimit::disable())
        .with_state(Arc::clone(&server));
    let mut saver = None;
    if let Some(ic) = server.config.ic.clone() {
        let (node, directory) = start_ic(&server, &ic)?;
        if let Some(directory) = &ic.status_dir {
            launcher::report(directory, &node, listener.local_addr()?.port())?;
        }
        let canisters = Arc::clone(&node.instance);
        saver = directory.map(|directory| Arc::new(Saver::new(Arc::clone(&node), directory)));
        app = raw_gateway::before(app.merge(http::router(node)), canisters);
    }
    let saving = saver.clone().map(|saver| tokio::spawn(saver.run()));
    let app = app.layer(axum::middleware::from_fn_with_state(Arc::clone(&server), note_request));
    let (stopping, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = axum::serve(listener, app).with_graceful_shutdown(async move {
        tokio::select! {
            () = server.until_idle() => {}
            () = stop => {}
        }
        let _ = stopping.send(());
    });
    let served = tokio::select! {
        served = serving.into_future() => served,
        // Requests that are still being answered have had their time.
        () = async { let _ = stopped.await; tokio::time::sleep(GRACE).await } => Ok(()),
    };
    if let (Some(saver), Some(saving)) = (saver, saving) {
        saving.abort();
        let saved = tokio::task::spawn_blocking(move || saver.finish()).await.map_err(std::io::Error::other)?;
        saved.map_err(std::io::Error::other)?;
    }
    served
}

/// Makes instance 0 or loads it, and lets it run.
fn start_ic(server: &Server, ic: &IcConfig) -> std::io::Result<(Arc<Node>, Option<StateDir>)> {
    let config = |seed: &[u8; 32]| Config {
        time_nanos: now_nanos(),
        root_key: Keys::from_seed(seed).root_der().to_vec(),
        ..server.config.replica.clone()
    };
    let opened = ic.state_dir.as_ref().map(|path| open_state(path, &ic.key_seed, config));
    let (directory, replica, seed, calls) = match opened.transpose().map_err(std::io::Error::other)? {
        Some((directory, replica, seed, calls)) => (Some(directory), replica, seed, calls),
        None => (None, Replica::new(config(&ic.key_seed)), ic.key_seed, serde_json::Value::Null),
    };
    let instance = Arc::new(Instance::new(replica, "Application", true));
    let node = Node::new(Arc::clone(&instance), Keys::from_seed(&seed), &calls);
    let node = node.map_err(|failure| std::io::Error::other(failure.to_string()))?;
    let mut instances = server.instances.lock().unwrap_or_else(PoisonError::into_inner);
    instances.push(Some(Arc::clone(&instance)));
    progress(instance);
    Ok((Arc::new(node), directory))
}

/// The state in a directory, with the seed of its keys and the calls that were known.
fn open_state(
    path: &std::path::Path,
    new_seed: &[u8; 32],
    config: impl Fn(&[u8; 32]) -> Config,
) -> Result<(StateDir, Replica, [u8; 32], serde_json::Value), StateError> {
    let mut seed = Ok(*new_seed);
    let (mut directory, mut replica, mut front) = StateDir::open_with_front(path, |front| {
        if !front.is_null() {
            seed = saver::seed_of(front);
        }
        config(seed.as_ref().unwrap_or(new_seed))
    })?;
    let seed = seed?;
    if front.is_null() {
        // The keys last from the first moment on.
        front = saver::front(&seed, serde_json::Value::Null);
        let captured = replica.capture(|_| false)?;
        directory.write(captured, front.clone())?;
    }
    Ok((directory, replica, seed, saver::calls_of(&front)))
}

impl Server {
    async fn until_idle(&self) {
        loop {
            tokio::time::sleep(ROUND).await;
            let age = self.started.elapsed();
            let idle = age.saturating_sub(Duration::from_millis(self.last_request.load(Ordering::Relaxed)));
            let busy = self.running.load(Ordering::Relaxed) > 0;
            if self.config.ttl.is_some_and(|ttl| idle > ttl && !busy)
                || self.config.hard_ttl.is_some_and(|ttl| age > ttl)
            {
                return;
            }
        }
    }

    fn instance(&self, id: usize) -> Result<Arc<Instance>, (StatusCode, String)> {
        let instances = self.instances.lock().unwrap_or_else(PoisonError::into_inner);
        instances
            .get(id)
            .and_then(Option::clone)
            .ok_or_else(|| (StatusCode::NOT_FOUND, format!("there is no instance {id}")))
    }

    fn blob(&self, id: &[u8]) -> Option<Vec<u8>> {
        let id = <[u8; 32]>::try_from(id).ok()?;
        let blobs = self.blobs.lock().unwrap_or_else(PoisonError::into_inner);
        blobs.get(&id).map(|blob| blob.to_vec())
    }
}

async fn note_request(
    State(server): State<Arc<Server>>,
    request: axum::extract::Request,
    next: axum::middleware::Next,
) -> Response {
    server.running.fetch_add(1, Ordering::Relaxed);
    let response = next.run(request).await;
    let now = u64::try_from(server.started.elapsed().as_millis()).unwrap_or(u64::MAX);
    server.last_request.store(now, Ordering::Relaxed);
    server.running.fetch_sub(1, Ordering::Relaxed);
    response
}

fn json(status: StatusCode, body: Vec<u8>) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}

fn respond(answer: Answer) -> Response {
    match answer {
        Ok(body) => json(StatusCode::OK, body),
        Err((status, message)) => json(status, serde_json::to_vec(&ApiError { message }).unwrap_or_default()),
    }
}

/// Runs work that takes its time apart from the threads that serve the sockets.
async fn blocking(work: impl FnOnce() -> Answer + Send + 'static) -> Response {
    match tokio::task::spawn_blocking(work).await {
        Ok(answer) => respond(answer),
        Err(error) => respond(Err((StatusCode::INTERNAL_SERVER_ERROR, format!("the replica failed: {error}")))),
    }
}

async fn list(State(server): State<Arc<Server>>) -> Response {
    let instances = server.instances.lock().unwrap_or_else(PoisonError::into_inner);
    let states: Vec<_> = instances.iter().map(|i| if i.is_some() { "Available" } else { "Deleted" }).collect();
    respond(serde_json::to_vec(&states).map_err(|e| (StatusCode::INTERNAL_SERVER_ERROR, e.to_string())))
}

async fn create(State(server): State<Arc<Server>>, body: Bytes) -> Response {
    let (status, response) = match create_instance(&server, &body).await {
        Ok(created) => (StatusCode::CREATED, created),
        Err(message) => (StatusCode::BAD_REQUEST, CreateInstanceResponse::Error { message }),
    };
    json(status, serde_json::to_vec(&response).unwrap_or_default())
}

async fn create_instance(server: &Arc<Server>, body: &[u8]) -> Result<CreateInstanceResponse, String> {
    let asked: InstanceConfig = serde_json::from_slice(body).map_err(|e| e.to_string())?;
    let instance = new_instance(server, &asked)?;
    let http_gateway_info = match asked.http_gateway_config {
        Some(config) => Some(gateway::start(server, Arc::clone(&instance), config).await?),
        None => None,
    };
    if instance.auto_progress.load(Ordering::Relaxed) {
        progress(Arc::clone(&instance));
    }
    let topology = instance.topology();
    let mut instances = server.instances.lock().unwrap_or_else(PoisonError::into_inner);
    instances.push(Some(instance));
    Ok(CreateInstanceResponse::Created { instance_id: instances.len() - 1, topology, http_gateway_info })
}

fn new_instance(server: &Server, asked: &InstanceConfig) -> Result<Arc<Instance>, String> {
    let kinds = asked.subnet_config_set.kinds();
    let [kind] = kinds.as_slice() else {
        return Err(format!("the replica has exactly one subnet, not {} ({})", kinds.len(), kinds.join(", ")));
    };
    if asked.state_dir.is_some() {
        return Err("the replica keeps no state in a directory".into());
    }
    if let Some((feature, _)) = asked.icp_features.iter().flatten().find(|(_, enabled)| enabled.is_some()) {
        return Err(format!("the replica does not have the ICP feature '{feature}'"));
    }
    let mut config = server.config.replica.clone();
    let mut auto_progress = false;
    match &asked.initial_time {
        Some(InitialTime::Timestamp(time)) => config.time_nanos = time.nanos_since_epoch,
        Some(InitialTime::AutoProgress(_)) => auto_progress = true,
        None => {}
    }
    Ok(Arc::new(Instance::new(Replica::new(config), kind, auto_progress)))
}

async fn remove(State(server): State<Arc<Server>>, Path(id): Path<usize>) -> Response {
    let removed = {
        let mut instances = server.instances.lock().unwrap_or_else(PoisonError::into_inner);
        instances.get_mut(id).and_then(Option::take)
    };
    match removed {
        Some(instance) => {
            instance.deleted.store(true, Ordering::Relaxed);
            StatusCode::OK.into_response()
        }
        None => respond(Err((StatusCode::NOT_FOUND, format!("there is no instance {id}")))),
    }
}

async fn read(State(server): State<Arc<Server>>, Path((id, path)): Path<(usize, String)>) -> Response {
    match server.instance(id) {
        Ok(instance) => blocking(move || instance.get(&path)).await,
        Err(failure) => respond(Err(failure)),
    }
}

async fn write(State(server): State<Arc<Server>>, Path((id, path)): Path<(usize, String)>, body: Bytes) -> Response {
    let instance = match server.instance(id) {
        Ok(instance) => instance,
        Err(failure) => return respond(Err(failure)),
    };
    let starts_progress = path == "auto_progress" && !instance.auto_progress.load(Ordering::Relaxed);
    let progressing = Arc::clone(&instance);
    let response = blocking(move || {
        if starts_progress {
            instance.progress(now_nanos());
        }
        instance.post(&path, &body, |id| server.blob(id))
    })
    .await;
    if starts_progress && response.status() == StatusCode::OK {
        progress(progressing);
    }
    response
}

/// The machine's clock, nanoseconds since 1970.
pub(crate) fn now_nanos() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

/// Runs rounds at the machine's time until that is switched off.
fn progress(instance: Arc<Instance>) {
    tokio::spawn(async move {
        while instance.auto_progress.load(Ordering::Relaxed) && !instance.deleted.load(Ordering::Relaxed) {
            let round = Arc::clone(&instance);
            // A round that panics has lost its message; those behind it still run.
            let _ = tokio::task::spawn_blocking(move || round.progress(now_nanos())).await;
            let _ = tokio::time::timeout(ROUND, instance.wake.notified()).await;
        }
    });
}

async fn upload(State(server): State<Arc<Server>>, headers: HeaderMap, body: Bytes) -> Response {
    let gzip = headers.get(header::CONTENT_ENCODING).is_some_and(|encoding| encoding == "gzip");
    let mut blob = Vec::new();
    if gzip {
        let read = flate2::read::GzDecoder::new(&body[..]).take(BLOB_BYTES_MAX).read_to_end(&mut blob);
        if let Err(error) = read {
            return respond(Err((StatusCode::BAD_REQUEST, format!("the blob does not decompress: {error}"))));
        }
    } else {
        blob = body.to_vec();
    }
    let id: [u8; 32] = Sha256::digest(&blob).into();
    server.blobs.lock().unwrap_or_else(PoisonError::into_inner).insert(id, Arc::new(blob));
    hex::encode(id).into_response()
}

async fn create_gateway(State(server): State<Arc<Server>>, body: Bytes) -> Response {
    let created = match serde_json::from_slice(&body) {
        Ok(config) => gateway::create(&server, config).await,
        Err(error) => Err(error.to_string()),
    };
    let (status, response) = match created {
        Ok(info) => (StatusCode::CREATED, CreateHttpGatewayResponse::Created(info)),
        Err(message) => (StatusCode::BAD_REQUEST, CreateHttpGatewayResponse::Error { message }),
    };
    json(status, serde_json::to_vec(&response).unwrap_or_default())
}

async fn stop_gateway(State(server): State<Arc<Server>>, Path(id): Path<usize>) -> Response {
    gateway::stop(&server, id);
    axum::Json(()).into_response()
}
