//! A login that a node tries at itself: whether a target is there, not what it has for anybody.

use env::CoreHandle;
use iscsi::initiator_side::InitiatorConfig;
use iscsi::{Isid, LoginStatus};
use iscsi_initiator::{LoginError, connect};
use std::net::SocketAddr;
use std::time::Duration;

/// How long a login may take.
const LOGIN_TIME_MAX: Duration = Duration::from_secs(5);

/// What a portal answers of a target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TargetAnswer {
    /// It is there.
    Here,
    /// There is too much to do: nobody knows.
    Busy,
    /// Another answer, in words: hosts get it as well.
    Missing(String),
    /// The portal cannot be reached.
    Unreachable(String),
}

/// Logs in by a name that is granted nothing anywhere: a target that is there refuses it with
/// 0202h.
pub async fn try_target(
    core: &CoreHandle,
    portal: SocketAddr,
    initiator: &str,
    target: &str,
) -> TargetAnswer {
    let mut config = InitiatorConfig::new(initiator, Some(target), Isid([0x80, 0, 0, 0, 0, 1]));
    config.login_timeout = LOGIN_TIME_MAX;
    match connect(core, portal, None, &config).await {
        Ok(mut connection) => {
            connection.logout();
            TargetAnswer::Here
        }
        Err(error) => answer_of(&error),
    }
}

fn answer_of(error: &LoginError) -> TargetAnswer {
    match error {
        LoginError::Connect(error) => TargetAnswer::Unreachable(error.to_string()),
        LoginError::Lost(_)
        | LoginError::Refused {
            status: None | Some(LoginStatus::OutOfResources | LoginStatus::TooManyConnections),
            ..
        } => TargetAnswer::Busy,
        LoginError::Refused {
            status: Some(LoginStatus::AuthorizationFailure),
            ..
        } => TargetAnswer::Here,
        LoginError::Refused { reason, .. } => TargetAnswer::Missing(reason.clone()),
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn only_one_status_says_that_a_target_is_there_and_a_full_house_says_nothing() {
        let of = |status: Option<LoginStatus>| {
            answer_of(&LoginError::Refused {
                status,
                reason: status.map_or_else(String::new, |it| it.to_string()),
                redirect: None,
            })
        };
        assert_eq!(
            of(Some(LoginStatus::AuthorizationFailure)),
            TargetAnswer::Here
        );
        for busy in [None, Some(LoginStatus::OutOfResources)] {
            assert_eq!(of(busy), TargetAnswer::Busy);
        }
        let missing = TargetAnswer::Missing("0203h target not found".to_owned());
        assert_eq!(of(Some(LoginStatus::NotFound)), missing);
        let away = LoginError::Connect(std::io::Error::other("no way"));
        assert_eq!(
            answer_of(&away),
            TargetAnswer::Unreachable("no way".to_owned())
        );
    }
}
