//! The methods `access_…`.
use super::{typed, write};
use crate::error::Failure;
use crate::guard::{self, Roles, Rule, too_large};
use crate::host::{Caller, Host};
use crate::limits::ROLES_MAX;
use crate::ops;
use crate::service::Service;
use candid::Principal;
use candid::utils::ArgumentDecoder;
use icsql_engine::Writer;
use icsql_types::method::{self, Method};
use icsql_types::{AccessList, Answer, Error, Grant, Role, WriteOptions};

/// `access_grant`.
pub fn grant(host: &impl Host, service: &mut Service) {
    let options = |(_, options): &(Grant, Option<WriteOptions>)| options.clone();
    change(host, service, &guard::ACCESS_GRANT, &method::ACCESS_GRANT, options, |roles, writer, (grant, _)| {
        let principal = principal(grant.who)?;
        if principal.is_anonymous() && grant.role > Role::Reader {
            let message =
                "the anonymous principal is anyone: it can be a reader, never a writer or an admin".to_owned();
            return Err(Error::InvalidArgument { argument: "role".to_owned(), message }.into());
        }
        if roles.get(&principal).is_none() && roles.count() >= ROLES_MAX {
            return Err(too_large("principals with a role", ROLES_MAX, roles.count() + 1).into());
        }
        Ok(ops::access::grant(writer, &principal, grant.role)?)
    });
}

/// `access_revoke`.
pub fn revoke(host: &impl Host, service: &mut Service) {
    let options = |(_, options): &(Principal, Option<WriteOptions>)| options.clone();
    change(host, service, &guard::ACCESS_REVOKE, &method::ACCESS_REVOKE, options, |roles, writer, (who, _)| {
        let principal = principal(who)?;
        if roles.get(&principal).is_none() {
            return Err(Error::NotFound { what: "role of principal".to_owned(), name: who.to_text() }.into());
        }
        Ok(ops::access::revoke(writer, &principal)?)
    });
}

/// `access_list`.
pub fn list(host: &impl Host, service: &mut Service) {
    typed(host, service, &guard::ACCESS_LIST, &method::ACCESS_LIST, |service, ()| {
        let grants = service
            .roles
            .iter()
            .map(|(principal, role)| Grant { who: Principal::from_slice(principal.as_slice()), role: *role });
        Ok(AccessList { grants: grants.collect(), public_kv: service.roles.public_kv })
    });
}

/// `access_set_public_kv`.
pub fn set_public_kv(host: &impl Host, service: &mut Service) {
    let options = |(_, options): &(bool, Option<WriteOptions>)| options.clone();
    let (rule, types) = (&guard::ACCESS_SET_PUBLIC_KV, &method::ACCESS_SET_PUBLIC_KV);
    change(host, service, rule, types, options, |_, writer, (public, _)| {
        Ok(ops::access::set_public_kv(writer, public)?)
    });
}

/// A write after which the roles on the heap are those of the database.
fn change<A: for<'a> ArgumentDecoder<'a>>(
    host: &impl Host,
    service: &mut Service,
    rule: &'static Rule,
    types: &Method<A, Answer<()>>,
    options: impl FnOnce(&A) -> Option<WriteOptions>,
    body: impl FnOnce(&Roles, &Writer<'_>, A) -> Result<(), Failure>,
) {
    let mut changed = None;
    let committed = write(host, service, rule, types, options, |roles, writer, arguments| {
        body(roles, writer, arguments)?;
        changed = Some(ops::access::load(writer)?);
        Ok(())
    });
    // None: the call was one that was done before.
    if let (true, Some(roles)) = (committed, changed) {
        service.roles = roles;
    }
}

fn principal(principal: Principal) -> Result<Caller, Error> {
    Caller::new(principal.as_slice()).ok_or_else(|| Error::InvalidArgument {
        argument: "principal".to_owned(),
        message: "it has more than 29 bytes".to_owned(),
    })
}
