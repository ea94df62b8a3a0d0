//! What a login settles: the values in force, and the values that one side wishes for.
//!
//! Spec: RFC 7143 13 "Login/Text Operational Text Keys".

/// Largest number that a 24-bit length key may have: 2^24 - 1.
pub const LENGTH_MAX: u32 = (1 << 24) - 1;

/// Whether a digest is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DigestChoice {
    /// No digest, whatever the other side offers.
    Never,
    /// As the initiator prefers. An initiator of ours offers `None,CRC32C`.
    #[default]
    Allowed,
    /// With digest if the other side can. An initiator of ours offers `CRC32C,None`.
    Preferred,
    /// Without digest there is no session.
    Required,
}

/// What one side offers and accepts in the operational negotiation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Offer {
    /// Digest over headers.
    pub header_digest: DigestChoice,
    /// Digest over data segments.
    pub data_digest: DigestChoice,
    /// Longest data segment that this side receives, in bytes: 512 to 2^24 - 1.
    pub max_recv_data_segment_length: u32,
    /// Longest Data-In or solicited Data-Out sequence, in bytes.
    pub max_burst_length: u32,
    /// Most unsolicited data of a command, in bytes.
    pub first_burst_length: u32,
    /// Data must be asked for by R2T (result: OR).
    pub initial_r2t: bool,
    /// Commands may carry data (result: AND).
    pub immediate_data: bool,
    /// R2Ts outstanding for one task.
    pub max_outstanding_r2t: u16,
    /// Data PDUs of a sequence come in order (result: OR).
    pub data_pdu_in_order: bool,
    /// Sequences come in order (result: OR).
    pub data_sequence_in_order: bool,
    /// Seconds to wait before reconnecting (result: the larger).
    pub default_time2wait: u16,
    /// Seconds that tasks survive their connection (result: the smaller).
    pub default_time2retain: u16,
    /// Connections of a session.
    pub max_connections: u16,
    /// The highest level that we offer; the lower of both sides' holds.
    pub error_recovery_level: u8,
}

impl Default for Offer {
    fn default() -> Self {
        Self {
            header_digest: DigestChoice::Allowed,
            data_digest: DigestChoice::Allowed,
            max_recv_data_segment_length: 256 << 10,
            max_burst_length: LENGTH_MAX,
            first_burst_length: 256 << 10,
            initial_r2t: false,
            immediate_data: true,
            max_outstanding_r2t: 16,
            data_pdu_in_order: true,
            data_sequence_in_order: true,
            default_time2wait: 2,
            default_time2retain: 0,
            max_connections: 1,
            error_recovery_level: 0,
        }
    }
}

/// The values in force on a connection and its session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parameters {
    /// CRC32C over headers.
    pub header_digest: bool,
    /// CRC32C over data segments.
    pub data_digest: bool,
    /// Longest data segment that we receive, in bytes.
    pub own_max_recv_data_segment_length: u32,
    /// Longest data segment that the peer receives, in bytes.
    pub peer_max_recv_data_segment_length: u32,
    /// Longest Data-In or solicited Data-Out sequence, in bytes.
    pub max_burst_length: u32,
    /// Most unsolicited data of a command, in bytes; never more than `max_burst_length`.
    pub first_burst_length: u32,
    /// No unsolicited Data-Out.
    pub initial_r2t: bool,
    /// Commands may carry data.
    pub immediate_data: bool,
    /// R2Ts outstanding for one task.
    pub max_outstanding_r2t: u16,
    /// Data PDUs of a sequence come in order.
    pub data_pdu_in_order: bool,
    /// Sequences come in order.
    pub data_sequence_in_order: bool,
    /// Seconds to wait before reconnecting.
    pub default_time2wait: u16,
    /// Seconds that tasks survive their connection.
    pub default_time2retain: u16,
    /// Connections of a session.
    pub max_connections: u16,
    /// The level that both sides can do: 0 to 2.
    pub error_recovery_level: u8,
}

impl Default for Parameters {
    /// The standard's defaults, in force until something else is negotiated.
    fn default() -> Self {
        Self {
            header_digest: false,
            data_digest: false,
            own_max_recv_data_segment_length: 8192,
            peer_max_recv_data_segment_length: 8192,
            max_burst_length: 262_144,
            first_burst_length: 65_536,
            initial_r2t: true,
            immediate_data: true,
            max_outstanding_r2t: 1,
            data_pdu_in_order: true,
            data_sequence_in_order: true,
            default_time2wait: 2,
            default_time2retain: 20,
            max_connections: 1,
            error_recovery_level: 0,
        }
    }
}
