//! Every way in which a target can answer a login, with class and detail.
//!
//! Spec: RFC 7143 11.13.5 "Status-Class and Status-Detail".

use core::fmt;

/// Result of a login.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoginStatus {
    /// 0000h.
    Success,
    /// 0101h: the target is for now at the address that TargetAddress gives.
    TargetMovedTemporarily,
    /// 0102h: the target is for good at the address that TargetAddress gives.
    TargetMovedPermanently,
    /// 0200h: miscellaneous iSCSI initiator errors.
    InitiatorError,
    /// 0201h: the initiator could not be authenticated, or target authentication is not supported.
    AuthenticationFailure,
    /// 0202h: the initiator is not allowed access to the target.
    AuthorizationFailure,
    /// 0203h: the target does not exist at this address.
    NotFound,
    /// 0204h: the target has been removed; no forwarding address.
    TargetRemoved,
    /// 0205h: the protocol version is not supported.
    UnsupportedVersion,
    /// 0206h: too many connections on this session.
    TooManyConnections,
    /// 0207h: missing parameter (InitiatorName or TargetName).
    MissingParameter,
    /// 0208h: the target cannot include this connection in the session.
    CannotIncludeInSession,
    /// 0209h: the target does not support this type of session.
    SessionTypeNotSupported,
    /// 020Ah: the session does not exist.
    SessionDoesNotExist,
    /// 020Bh: invalid request type during login.
    InvalidRequestDuringLogin,
    /// 0300h: target hardware or software error.
    TargetError,
    /// 0301h: the service is not operational.
    ServiceUnavailable,
    /// 0302h: out of resources.
    OutOfResources,
    /// A code that this list does not have (only from a peer).
    Other {
        /// Status class.
        class: u8,
        /// Status detail.
        detail: u8,
    },
}

impl LoginStatus {
    /// Status class and detail on the wire.
    #[must_use]
    pub const fn code(self) -> (u8, u8) {
        match self {
            Self::Success => (0, 0),
            Self::TargetMovedTemporarily => (1, 1),
            Self::TargetMovedPermanently => (1, 2),
            Self::InitiatorError => (2, 0),
            Self::AuthenticationFailure => (2, 1),
            Self::AuthorizationFailure => (2, 2),
            Self::NotFound => (2, 3),
            Self::TargetRemoved => (2, 4),
            Self::UnsupportedVersion => (2, 5),
            Self::TooManyConnections => (2, 6),
            Self::MissingParameter => (2, 7),
            Self::CannotIncludeInSession => (2, 8),
            Self::SessionTypeNotSupported => (2, 9),
            Self::SessionDoesNotExist => (2, 10),
            Self::InvalidRequestDuringLogin => (2, 11),
            Self::TargetError => (3, 0),
            Self::ServiceUnavailable => (3, 1),
            Self::OutOfResources => (3, 2),
            Self::Other { class, detail } => (class, detail),
        }
    }

    /// The status of a code from the wire.
    #[must_use]
    pub const fn from_code(class: u8, detail: u8) -> Self {
        match (class, detail) {
            (0, 0) => Self::Success,
            (1, 1) => Self::TargetMovedTemporarily,
            (1, 2) => Self::TargetMovedPermanently,
            (2, 0) => Self::InitiatorError,
            (2, 1) => Self::AuthenticationFailure,
            (2, 2) => Self::AuthorizationFailure,
            (2, 3) => Self::NotFound,
            (2, 4) => Self::TargetRemoved,
            (2, 5) => Self::UnsupportedVersion,
            (2, 6) => Self::TooManyConnections,
            (2, 7) => Self::MissingParameter,
            (2, 8) => Self::CannotIncludeInSession,
            (2, 9) => Self::SessionTypeNotSupported,
            (2, 10) => Self::SessionDoesNotExist,
            (2, 11) => Self::InvalidRequestDuringLogin,
            (3, 0) => Self::TargetError,
            (3, 1) => Self::ServiceUnavailable,
            (3, 2) => Self::OutOfResources,
            (class, detail) => Self::Other { class, detail },
        }
    }
}

impl fmt::Display for LoginStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (class, detail) = self.code();
        let text = match self {
            Self::Success => "success",
            Self::TargetMovedTemporarily => "target moved temporarily",
            Self::TargetMovedPermanently => "target moved permanently",
            Self::InitiatorError => "initiator error",
            Self::AuthenticationFailure => "authentication failure",
            Self::AuthorizationFailure => "authorization failure",
            Self::NotFound => "target not found",
            Self::TargetRemoved => "target removed",
            Self::UnsupportedVersion => "unsupported version",
            Self::TooManyConnections => "too many connections",
            Self::MissingParameter => "missing parameter",
            Self::CannotIncludeInSession => "cannot include in session",
            Self::SessionTypeNotSupported => "session type not supported",
            Self::SessionDoesNotExist => "session does not exist",
            Self::InvalidRequestDuringLogin => "invalid request during login",
            Self::TargetError => "target error",
            Self::ServiceUnavailable => "service unavailable",
            Self::OutOfResources => "out of resources",
            Self::Other { .. } => "unknown status",
        };
        write!(f, "{class:02X}{detail:02X}h {text}")
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn every_code_reads_back_as_itself() {
        for class in 0..=255 {
            for detail in 0..=255 {
                let status = LoginStatus::from_code(class, detail);
                assert_eq!(status.code(), (class, detail));
            }
        }
        assert_eq!(
            LoginStatus::SessionDoesNotExist.to_string(),
            "020Ah session does not exist"
        );
    }
}
