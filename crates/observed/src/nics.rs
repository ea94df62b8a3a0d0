//! The bytes of the machine's network interfaces, as the kernel counts them.

/// An interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Nic {
    /// As the kernel calls it.
    pub name: String,
    /// Bytes that came.
    pub bytes_in: u64,
    /// Bytes that went.
    pub bytes_out: u64,
}

/// More are not recorded: a machine with thousands has them for its containers.
const NICS_MAX: usize = 64;

/// All but the loopback interface.
pub struct Nics(pub Vec<Nic>);

impl Nics {
    /// As they are now; none where the kernel does not say.
    #[must_use]
    pub fn read() -> Self {
        Self::parse(&std::fs::read_to_string("/proc/net/dev").unwrap_or_default())
    }

    /// `NAME: bytes packets ...`, of which the first eight are what came in.
    fn parse(text: &str) -> Self {
        let nic = |line: &str| {
            let (name, counts) = line.split_once(':')?;
            let mut counts = counts.split_ascii_whitespace();
            Some(Nic {
                name: name.trim().to_owned(),
                bytes_in: counts.next()?.parse().ok()?,
                bytes_out: counts.nth(7)?.parse().ok()?,
            })
        };
        let all = text.lines().filter_map(nic).filter(|nic| nic.name != "lo");
        Self(all.take(NICS_MAX).collect())
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn the_kernels_table_is_read() {
        let text = "Inter-|   Receive                                                |  Transmit\n \
                    face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop\n    \
                    lo: 1000 10 0 0 0 0 0 0 1000 10 0 0 0 0 0 0\n  \
                    eth0:18446744073709551615 7 0 0 0 0 0 0 42 9 0 0 0 0 0 0\nbad: 1\n";
        let nic = Nic {
            name: "eth0".to_owned(),
            bytes_in: u64::MAX,
            bytes_out: 42,
        };
        assert_eq!(Nics::parse(text).0, [nic]);
    }
}
