//! Logging in at a path, wherever the target sends us.

use super::login::{Fencing, Login};
use super::path::PathConfig;
use crate::login::{LoginError, connect_by};
use crate::session::Session;
use env::CoreHandle;
use std::net::SocketAddr;
use std::time::Duration;

/// A login with all its questions takes no longer.
pub(super) const LOGIN_MAX: Duration = Duration::from_secs(20);
pub(super) const TOO_LONG: &str = "the login took too long";
/// Redirections that are followed.
const REDIRECTS_MAX: u32 = 4;
/// The port where none is named (RFC 7143 15 "IANA Considerations").
const ISCSI_PORT: u16 = 3260;

/// Logs in, and follows the target to another portal where it asks for that.
pub(super) async fn open(
    core: &CoreHandle,
    config: &PathConfig,
) -> Result<(Session, Login), LoginError> {
    let interface = config.interface.as_deref();
    let mut portal = config.portal;
    let mut hops = 0;
    let connection = loop {
        match connect_by(core, portal, config.from, interface, &config.login).await {
            Err(LoginError::Refused {
                redirect: Some(to), ..
            }) if hops < REDIRECTS_MAX && address(&to).is_some() => {
                portal = address(&to).unwrap_or(portal);
                hops += 1;
            }
            other => break other?,
        }
    };
    let login = Login {
        isid: config.login.isid,
        tsih: connection.tsih(),
        group_tag: connection.portal_group_tag(),
        fencing: Fencing::default(),
    };
    Ok((Session::new(core, connection), login))
}

/// TargetAddress of a redirection: address and port, and perhaps a portal group tag (RFC 7143 13.8
/// "TargetAddress").
fn address(text: &str) -> Option<SocketAddr> {
    let text = text.split_once(',').map_or(text, |(address, _)| address);
    let with_port = text.parse().ok();
    with_port.or_else(|| {
        let bare = text.trim_start_matches('[').trim_end_matches(']');
        Some(SocketAddr::new(bare.parse().ok()?, ISCSI_PORT))
    })
}
