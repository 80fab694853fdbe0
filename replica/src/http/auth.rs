//! Who sent a request: signatures, delegations, and how long a request is valid.

use super::limits::*;
use candid::Principal;
use ic_transport_types::{Delegation, DelegationPermissions, Envelope, EnvelopeContent, SignedDelegation};
use std::collections::BTreeSet;

/// Why a request is not what it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AuthError {
    /// Nanoseconds: the earliest and latest expiry that is taken, and the one that was given.
    Expiry {
        earliest: u64,
        latest: u64,
        given: u64,
    },
    NonceTooLong(usize),
    AnonymousSigned,
    Unsigned(Principal),
    NotTheKeysPrincipal(Principal),
    /// What is wrong with the signature of the request.
    Signature(String),
    TooManyDelegations(usize),
    TooManyTargets(usize),
    /// A key comes twice in the chain.
    DelegationCycle,
    DelegationExpired {
        expiration: u64,
        now: u64,
    },
    /// What is wrong with the signature of the delegation with this index.
    DelegationSignature(usize, String),
    NotATarget(Principal),
    QueriesOnly,
    SenderInfo,
}

impl std::fmt::Display for AuthError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            // Agents look for these first words to find out that their clock is wrong.
            Self::Expiry { earliest, latest, given } => write!(
                f,
                "Invalid request expiry: Specified ingress_expiry not within expected range: it is {given} ns, \
                 and must be between {earliest} and {latest} ns since 1970"
            ),
            Self::NonceTooLong(bytes) => write!(f, "The nonce has {bytes} bytes, more than {NONCE_BYTES_MAX}"),
            Self::AnonymousSigned => f.write_str("A request of the anonymous principal must have no signature"),
            Self::Unsigned(sender) => {
                write!(f, "Missing signature: the request of {sender} has no key or no signature")
            }
            Self::NotTheKeysPrincipal(sender) => {
                write!(f, "The sender {sender} is not the principal of the public key in sender_pubkey")
            }
            Self::Signature(what) => write!(f, "Invalid signature: {what}"),
            Self::TooManyDelegations(count) => {
                write!(f, "Invalid delegation: a chain of {count} delegations, more than {DELEGATIONS_MAX}")
            }
            Self::TooManyTargets(count) => {
                write!(f, "Invalid delegation: {count} targets, more than {DELEGATION_TARGETS_MAX}")
            }
            Self::DelegationCycle => f.write_str("Invalid delegation: a public key comes twice in the chain"),
            Self::DelegationExpired { expiration, now } => {
                write!(f, "Invalid delegation expiry: it expired at {expiration} ns since 1970, and it is {now}")
            }
            Self::DelegationSignature(index, what) => write!(f, "Invalid delegation: number {index}: {what}"),
            Self::NotATarget(canister) => write!(f, "Canister {canister} is not one of the delegation targets"),
            Self::QueriesOnly => f.write_str("The delegation permits queries and read_state only, and this is a call"),
            Self::SenderInfo => f.write_str("This replica does not take requests with sender_info: leave it out"),
        }
    }
}

impl std::error::Error for AuthError {}

/// The canisters that a request's delegations let it reach; `None` for all.
pub(super) type Targets = Option<BTreeSet<Principal>>;

/// Whether this canister is one of them.
pub(super) fn permits(targets: &Targets, canister: &Principal) -> bool {
    targets.as_ref().is_none_or(|targets| targets.contains(canister))
}

/// Checks that the request comes from its sender and is valid now. `root_key` (raw) is what canister signatures are
/// checked against.
pub(super) fn authenticate(envelope: &Envelope<'_>, now: u64, root_key: &[u8]) -> Result<Targets, AuthError> {
    let content = &*envelope.content;
    let (nonce, sender_info, receiver) = match content {
        EnvelopeContent::Call { nonce, sender_info, canister_id, .. }
        | EnvelopeContent::Query { nonce, sender_info, canister_id, .. } => {
            (nonce.as_deref(), sender_info.is_some(), Some(canister_id))
        }
        EnvelopeContent::ReadState { .. } => (None, false, None),
    };
    let is_call = matches!(content, EnvelopeContent::Call { .. });
    let sender = *content.sender();
    // What an anonymous reader is told is not for one request alone, so that it does not matter when it was made.
    if is_call || sender != Principal::anonymous() {
        check_expiry(content.ingress_expiry(), now)?;
    }
    if let Some(nonce) = nonce.filter(|nonce| nonce.len() > NONCE_BYTES_MAX) {
        return Err(AuthError::NonceTooLong(nonce.len()));
    }
    if sender_info {
        return Err(AuthError::SenderInfo);
    }
    let targets = check_sender(envelope, now, root_key, is_call)?;
    match receiver {
        Some(receiver) if !permits(&targets, receiver) => Err(AuthError::NotATarget(*receiver)),
        _ => Ok(targets),
    }
}

fn check_expiry(given: u64, now: u64) -> Result<(), AuthError> {
    let window = u64::try_from((INGRESS_TTL + CLOCK_DRIFT).as_nanos()).unwrap_or(u64::MAX);
    let latest = now.saturating_add(window);
    if (now..=latest).contains(&given) { Ok(()) } else { Err(AuthError::Expiry { earliest: now, latest, given }) }
}

fn check_sender(envelope: &Envelope<'_>, now: u64, root_key: &[u8], is_call: bool) -> Result<Targets, AuthError> {
    let sender = *envelope.content.sender();
    let delegations = envelope.sender_delegation.as_deref().unwrap_or_default();
    if sender == Principal::anonymous() {
        let bare = envelope.sender_pubkey.is_none() && envelope.sender_sig.is_none() && delegations.is_empty();
        return if bare { Ok(None) } else { Err(AuthError::AnonymousSigned) };
    }
    let (Some(key), Some(signature)) = (&envelope.sender_pubkey, &envelope.sender_sig) else {
        return Err(AuthError::Unsigned(sender));
    };
    if Principal::self_authenticating(key) != sender {
        return Err(AuthError::NotTheKeysPrincipal(sender));
    }
    let targets = check_delegations(key, delegations, now, root_key, is_call)?;
    let signer = delegations.last().map_or(key, |signed| &signed.delegation.pubkey);
    let message = envelope.content.to_request_id().signable();
    verify(signer, &message, signature, root_key).map_err(AuthError::Signature)?;
    Ok(targets)
}

fn check_delegations(
    key: &[u8],
    chain: &[SignedDelegation],
    now: u64,
    root_key: &[u8],
    is_call: bool,
) -> Result<Targets, AuthError> {
    if chain.len() > DELEGATIONS_MAX {
        return Err(AuthError::TooManyDelegations(chain.len()));
    }
    let mut seen = BTreeSet::from([key]);
    let mut signer = key;
    let mut targets = None;
    for (index, SignedDelegation { delegation, signature }) in chain.iter().enumerate() {
        if !seen.insert(&delegation.pubkey) {
            return Err(AuthError::DelegationCycle);
        }
        if delegation.expiration < now {
            return Err(AuthError::DelegationExpired { expiration: delegation.expiration, now });
        }
        if is_call && matches!(delegation.permissions, Some(DelegationPermissions::Queries)) {
            return Err(AuthError::QueriesOnly);
        }
        targets = narrow(targets, delegation)?;
        verify(signer, &delegation.signable(), signature, root_key)
            .map_err(|what| AuthError::DelegationSignature(index, what))?;
        signer = &delegation.pubkey;
    }
    Ok(targets)
}

fn narrow(targets: Targets, delegation: &Delegation) -> Result<Targets, AuthError> {
    let Some(named) = &delegation.targets else { return Ok(targets) };
    if named.len() > DELEGATION_TARGETS_MAX {
        return Err(AuthError::TooManyTargets(named.len()));
    }
    Ok(Some(named.iter().filter(|canister| permits(&targets, canister)).copied().collect()))
}

/// Checks a signature under a public key in DER, of any kind that the IC takes except WebAuthn's.
fn verify(key: &[u8], message: &[u8], signature: &[u8], root_key: &[u8]) -> Result<(), String> {
    let fits = |fits: bool, kind: &str| {
        if fits { Ok(()) } else { Err(format!("it does not fit the request and the {kind} key")) }
    };
    if let Ok(key) = ic_ed25519::PublicKey::deserialize_rfc8410_der(key) {
        return fits(key.verify_signature(message, signature).is_ok(), "Ed25519");
    }
    if let Ok(key) = ic_secp256k1::PublicKey::deserialize_der(key) {
        return fits(key.verify_ecdsa_signature_with_malleability(message, signature), "secp256k1");
    }
    if let Ok(key) = ic_secp256r1::PublicKey::deserialize_canonical_der(key) {
        return fits(key.verify_signature(message, signature), "P-256");
    }
    ic_signature_verification::verify_canister_sig(message, signature, key, root_key).map_err(|error| {
        format!(
            "the key is not an Ed25519, secp256k1 or P-256 key in DER, and as a canister signature it fails: {error}"
        )
    })
}
