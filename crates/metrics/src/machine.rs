//! What metrics report of the machine, and of files that have an end.

use super::family::{Family, Text};

/// What there is to report beside the node.
#[derive(Default)]
pub struct MachineFigures {
    /// The commit that the program was built from; empty: nobody said it.
    pub commit: &'static str,
    /// The network interfaces.
    pub nics: Vec<NicFigures>,
    /// Certificates by name, and when each ends, in seconds since 1970.
    pub certificates: Vec<(String, u64)>,
    /// Nothing was wrong with the settings when they were read last.
    pub reloaded: bool,
    /// What was sent to the API as a proof and is none, since the start: logins, tokens.
    pub bad_proofs: [u64; 2],
}

/// What there is to report of a network interface.
pub struct NicFigures {
    /// What the kernel calls it, such as `eth2`.
    pub name: String,
    /// Bytes that came in, as the kernel counts.
    pub bytes_in: u64,
    /// Bytes that went out.
    pub bytes_out: u64,
    /// Bits a second, where that is known.
    pub bits_per_second: Option<u64>,
}

pub(super) const NIC_BYTES: Family<2> = Family::counter(
    "causeway_nic_bytes_total",
    ["nic", "direction"],
    "Bytes of a network interface, `in` and `out`, as the kernel counts them; of 64 at most, without the loopback one",
);

pub(super) const NIC_SPEED: Family<1> = Family::gauge(
    "causeway_nic_speed_bits",
    ["nic"],
    "Bits a second that a NIC with an address has, where that is known",
);

pub(super) const CERTIFICATE: Family<1> = Family::gauge(
    "causeway_certificate_end_timestamp_seconds",
    ["certificate"],
    "When a certificate ends, in seconds since 1970: `api` is that of https",
);

pub(super) const RELOADED: Family<0> = Family::gauge(
    "causeway_config_reload_success",
    [],
    "1: the settings could be used when they were read last (at the start, by SIGHUP or `config reload`); 0: they were \
     refused, and those before hold",
);

pub(super) const BAD_PROOFS: Family<1> = Family::counter(
    "causeway_api_refused_total",
    ["proof"],
    "Requests to the API with a `login` that failed, or a `token` that nobody knows or that has ended",
);

pub(super) fn machine(out: &mut Text, figures: &MachineFigures) {
    out.family(&NIC_BYTES);
    for nic in &figures.nics {
        for (direction, bytes) in [("in", nic.bytes_in), ("out", nic.bytes_out)] {
            out.series(&NIC_BYTES, [&nic.name, direction], bytes);
        }
    }
    out.family(&NIC_SPEED);
    for nic in &figures.nics {
        if let Some(bits) = nic.bits_per_second {
            out.series(&NIC_SPEED, [&nic.name], bits);
        }
    }
    out.family(&CERTIFICATE);
    for (name, end) in &figures.certificates {
        out.series(&CERTIFICATE, [name], end);
    }
    out.family(&RELOADED);
    out.series(&RELOADED, [], u8::from(figures.reloaded));
    out.family(&BAD_PROOFS);
    for (proof, count) in ["login", "token"].into_iter().zip(figures.bad_proofs) {
        out.series(&BAD_PROOFS, [proof], count);
    }
}
