//! The JSON of the PocketIC protocol, as far as the replica speaks it. Bytes travel as base64.

use crate::types::{ErrorCode, Reject};
use base64::prelude::*;
use candid::Principal;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;

/// Bytes that are base64 in JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Bytes(pub Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64_STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        BASE64_STANDARD.decode(text.as_bytes()).map(Bytes).map_err(serde::de::Error::custom)
    }
}

impl Bytes {
    /// The principal with these bytes.
    pub fn principal(&self) -> Result<Principal, String> {
        Principal::try_from_slice(&self.0).map_err(|e| format!("not a principal: {e}"))
    }
}

impl From<Principal> for Bytes {
    fn from(principal: Principal) -> Self {
        Self(principal.as_slice().to_vec())
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct RawTime {
    pub nanos_since_epoch: u64,
}

#[derive(Deserialize)]
pub(super) enum InitialTime {
    Timestamp(RawTime),
    AutoProgress(serde::de::IgnoredAny),
}

/// What a client asks of an instance; everything else is ignored.
#[derive(Deserialize)]
pub(super) struct InstanceConfig {
    pub subnet_config_set: SubnetConfigSet,
    #[serde(default)]
    pub state_dir: Option<std::path::PathBuf>,
    #[serde(default)]
    pub icp_features: Option<BTreeMap<String, Option<serde::de::IgnoredAny>>>,
    #[serde(default)]
    pub initial_time: Option<InitialTime>,
    #[serde(default)]
    pub http_gateway_config: Option<InstanceGatewayConfig>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct SubnetConfigSet {
    pub nns: Option<serde::de::IgnoredAny>,
    pub sns: Option<serde::de::IgnoredAny>,
    pub ii: Option<serde::de::IgnoredAny>,
    pub fiduciary: Option<serde::de::IgnoredAny>,
    pub bitcoin: Option<serde::de::IgnoredAny>,
    pub test_threshold_keys: Option<serde::de::IgnoredAny>,
    pub system: Vec<serde::de::IgnoredAny>,
    pub application: Vec<serde::de::IgnoredAny>,
    pub cloud_engine: Vec<serde::de::IgnoredAny>,
    pub verified_application: Vec<serde::de::IgnoredAny>,
}

impl SubnetConfigSet {
    /// The kinds of the subnets that are asked for, each as often as it is asked for.
    pub fn kinds(&self) -> Vec<&'static str> {
        let named = [
            (self.application.len(), "Application"),
            (self.verified_application.len(), "VerifiedApplication"),
            (self.system.len(), "System"),
            (self.cloud_engine.len(), "CloudEngine"),
            (usize::from(self.nns.is_some()), "NNS"),
            (usize::from(self.sns.is_some()), "SNS"),
            (usize::from(self.ii.is_some()), "II"),
            (usize::from(self.fiduciary.is_some()), "Fiduciary"),
            (usize::from(self.bitcoin.is_some()), "Bitcoin"),
            (usize::from(self.test_threshold_keys.is_some()), "TestThresholdKeys"),
        ];
        named.iter().flat_map(|(count, kind)| std::iter::repeat_n(*kind, *count)).collect()
    }
}

#[derive(Serialize)]
pub(super) enum CreateInstanceResponse {
    Created { instance_id: usize, topology: Topology, http_gateway_info: Option<GatewayInfo> },
    Error { message: String },
}

/// Where the gateway of an instance listens; the domains make no difference here.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct InstanceGatewayConfig {
    pub ip_addr: Option<String>,
    pub port: Option<u16>,
    pub https_config: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
pub(super) struct GatewayConfig {
    pub forward_to: GatewayBackend,
    #[serde(flatten)]
    pub settings: InstanceGatewayConfig,
}

#[derive(Deserialize)]
pub(super) enum GatewayBackend {
    Replica(serde::de::IgnoredAny),
    PocketIcInstance(usize),
}

/// A gateway's number, which the protocol calls the id of an instance, and its port.
#[derive(Serialize)]
pub(super) struct GatewayInfo {
    pub instance_id: usize,
    pub port: u16,
}

#[derive(Serialize)]
pub(super) enum CreateHttpGatewayResponse {
    Created(GatewayInfo),
    Error { message: String },
}

#[derive(Clone, Serialize)]
pub(super) struct Topology {
    pub subnet_configs: BTreeMap<Principal, SubnetConfig>,
    pub default_effective_canister_id: RawCanisterId,
}

#[derive(Clone, Serialize)]
pub(super) struct SubnetConfig {
    pub subnet_kind: &'static str,
    pub subnet_admins: Option<()>,
    pub cost_schedule: &'static str,
    pub subnet_seed: [u8; 32],
    pub instruction_config: &'static str,
    pub canister_ranges: Vec<CanisterIdRange>,
}

#[derive(Clone, Serialize)]
pub(super) struct CanisterIdRange {
    pub start: RawCanisterId,
    pub end: RawCanisterId,
}

#[derive(Clone, Serialize, Deserialize)]
pub(super) struct RawCanisterId {
    pub canister_id: Bytes,
}

#[derive(Serialize)]
pub(super) struct RawSubnetId {
    pub subnet_id: Bytes,
}

#[derive(Serialize)]
pub(super) struct RawPrincipalId {
    pub principal_id: Bytes,
}

#[derive(Deserialize)]
pub(super) struct RawCanisterCall {
    pub sender: Bytes,
    pub canister_id: Bytes,
    pub effective_principal: EffectivePrincipal,
    pub method: String,
    pub payload: Bytes,
}

#[derive(Clone, Serialize, Deserialize)]
pub(super) enum EffectivePrincipal {
    None,
    SubnetId(Bytes),
    CanisterId(Bytes),
}

#[derive(Clone, Serialize, Deserialize)]
pub(super) struct RawMessageId {
    pub effective_principal: EffectivePrincipal,
    pub message_id: Bytes,
}

#[derive(Deserialize)]
pub(super) struct RawPrincipalIdIn {
    pub principal_id: Bytes,
}

#[derive(Deserialize)]
pub(super) struct RawIngressStatusArgs {
    pub raw_message_id: RawMessageId,
    pub raw_caller: Option<RawPrincipalIdIn>,
}

#[derive(Clone, Serialize)]
pub(super) enum RawCanisterResult {
    Ok(Bytes),
    Err(RejectResponse),
}

#[derive(Clone, Serialize)]
pub(super) struct RejectResponse {
    pub reject_code: &'static str,
    pub reject_message: String,
    pub error_code: ErrorCode,
    pub certified: bool,
}

impl RejectResponse {
    pub fn new(reject: Reject, certified: bool) -> Self {
        let reject_code = match reject.reject_code() {
            1 => "SysFatal",
            2 => "SysTransient",
            3 => "DestinationInvalid",
            4 => "CanisterReject",
            5 => "CanisterError",
            _ => "SysUnknown",
        };
        Self { reject_code, reject_message: reject.message, error_code: reject.code, certified }
    }
}

impl RawCanisterResult {
    pub fn new(result: Result<Vec<u8>, Reject>, certified: bool) -> Self {
        match result {
            Ok(reply) => Self::Ok(Bytes(reply)),
            Err(reject) => Self::Err(RejectResponse::new(reject, certified)),
        }
    }
}

#[derive(Deserialize)]
pub(super) struct RawAddCycles {
    pub canister_id: Bytes,
    pub amount: u128,
}

#[derive(Serialize)]
pub(super) struct RawCycles {
    pub cycles: u128,
}

#[derive(Deserialize)]
pub(super) struct RawSetStableMemory {
    pub canister_id: Bytes,
    pub blob_id: Bytes,
}

#[derive(Serialize)]
pub(super) struct RawStableMemory {
    pub blob: Bytes,
}

#[derive(Serialize)]
pub(super) struct ApiError {
    pub message: String,
}

/// The costs of the messages since the last call began.
#[derive(Serialize)]
pub(super) struct Costs<'a> {
    pub messages: &'a [crate::types::MessageCost],
}
