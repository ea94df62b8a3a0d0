//! Sequence numbers that wrap.
//!
//! They implement RFC 1982 `precedes` and not `Ord`, so that `<` does not compile.
//!
//! Spec: RFC 7143 4.2.2 "Ordering and iSCSI Numbering", RFC 1982 "Serial Number Arithmetic".

macro_rules! serial {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
        pub struct $name(pub u32);

        impl $name {
            /// The number after this one.
            #[must_use]
            pub const fn next(self) -> Self {
                self.plus(1)
            }

            /// The number `count` after this one.
            #[must_use]
            pub const fn plus(self, count: u32) -> Self {
                Self(self.0.wrapping_add(count))
            }

            /// The number `count` before this one.
            #[must_use]
            pub const fn minus(self, count: u32) -> Self {
                Self(self.0.wrapping_sub(count))
            }

            /// How far this number is after `earlier`, counted upwards.
            #[must_use]
            pub const fn distance_from(self, earlier: Self) -> u32 {
                self.0.wrapping_sub(earlier.0)
            }

            /// This number comes before `other` (RFC 1982: less than half the circle away).
            #[must_use]
            pub const fn precedes(self, other: Self) -> bool {
                let ahead = other.distance_from(self);
                ahead != 0 && ahead < 0x8000_0000
            }
        }
    };
}

serial! {
    /// Command sequence number: per session.
    CmdSn
}
serial! {
    /// Status sequence number: per connection.
    StatSn
}
serial! {
    /// Data sequence number: per command (Data-In) or per sequence (Data-Out).
    DataSn
}
serial! {
    /// Ready-to-transfer sequence number: per command.
    R2tSn
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn order_survives_the_wrap() {
        assert!(CmdSn(u32::MAX).precedes(CmdSn(0)));
        assert!(!CmdSn(0).precedes(CmdSn(u32::MAX)));
        assert!(!CmdSn(7).precedes(CmdSn(7)));
        assert!(CmdSn(0).precedes(CmdSn(0x7FFF_FFFF)));
        assert!(!CmdSn(0).precedes(CmdSn(0x8000_0000)));
        assert_eq!(CmdSn(2).distance_from(CmdSn(u32::MAX)), 3);
    }
}
