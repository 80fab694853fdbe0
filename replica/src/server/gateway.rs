//! HTTP gateways of instances: each listens on a port of its own.

use super::instance::Instance;
use super::protocol::{GatewayBackend, GatewayConfig, GatewayInfo, InstanceGatewayConfig};
use super::{Server, note_request};
use crate::gateway::{self, Canisters};
use crate::types::Reject;
use candid::Principal;
use std::net::IpAddr;
use std::sync::{Arc, PoisonError};
use tokio::sync::oneshot;

/// The gateways of a server; dropping a sender stops its gateway.
pub(super) type Gateways = Vec<Option<oneshot::Sender<()>>>;

impl Canisters for Instance {
    fn exists(&self, id: Principal) -> bool {
        self.canister_exists(id)
    }

    fn query(&self, id: Principal, method: &str, argument: &[u8]) -> Result<Vec<u8>, Reject> {
        self.query_once(id, Principal::anonymous(), method, argument)
    }

    fn update(&self, id: Principal, method: &str, argument: &[u8]) -> Result<Vec<u8>, Reject> {
        self.update_once(id, Principal::anonymous(), method, argument)
    }
}

/// Starts the gateway that a request to `/http_gateway` describes.
pub(super) async fn create(server: &Arc<Server>, config: GatewayConfig) -> Result<GatewayInfo, String> {
    let GatewayBackend::PocketIcInstance(id) = config.forward_to else {
        return Err("the replica's gateways forward to its own instances only".into());
    };
    let instance = server.instance(id).map_err(|(_, message)| message)?;
    start(server, instance, config.settings).await
}

/// Starts a gateway for an instance.
pub(super) async fn start(
    server: &Arc<Server>,
    instance: Arc<Instance>,
    config: InstanceGatewayConfig,
) -> Result<GatewayInfo, String> {
    if config.https_config.is_some() {
        return Err("the replica's gateways speak plain HTTP only".into());
    }
    let address: IpAddr = match &config.ip_addr {
        Some(text) => text.parse().map_err(|e| format!("{text:?} is no IP address: {e}"))?,
        None => IpAddr::from([127, 0, 0, 1]),
    };
    if !address.is_loopback() {
        return Err(format!("the replica listens on this machine's loopback address only, not on {address}"));
    }
    let port = config.port.unwrap_or(0);
    let listener = tokio::net::TcpListener::bind((address, port)).await;
    let listener = listener.map_err(|e| format!("cannot listen on {address}:{port}: {e}"))?;
    let port = listener.local_addr().map_err(|e| e.to_string())?.port();
    let app = gateway::router(instance).layer(axum::middleware::from_fn_with_state(Arc::clone(server), note_request));
    let (stop, stopped) = oneshot::channel::<()>();
    tokio::spawn(async move {
        let serving = axum::serve(listener, app).with_graceful_shutdown(async move {
            let _ = stopped.await;
        });
        // A failing socket ends this gateway and nothing else.
        let _ = serving.await;
    });
    let mut gateways = server.gateways.lock().unwrap_or_else(PoisonError::into_inner);
    gateways.push(Some(stop));
    Ok(GatewayInfo { instance_id: gateways.len() - 1, port })
}

/// Stops a gateway; one that is not there, or no longer, is no error.
pub(super) fn stop(server: &Server, id: usize) {
    let mut gateways = server.gateways.lock().unwrap_or_else(PoisonError::into_inner);
    drop(gateways.get_mut(id).and_then(Option::take));
}
