//! PERSISTENT RESERVE IN parameter data.
//!
//! Spec: SPC-4 6.15.2 "READ KEYS", 6.15.3 "READ RESERVATION", 6.15.4 "REPORT CAPABILITIES", 6.15.5
//! "READ FULL STATUS".

use alloc::vec::Vec;

use super::Reservations;
use crate::bytes::{Writer, flag};
use crate::cdb::PrInAction;

impl Reservations {
    /// The parameter data, before it is cut to the allocation length.
    #[must_use]
    pub fn report(&self, action: PrInAction) -> Vec<u8> {
        let mut out = Writer::new();
        match action {
            PrInAction::ReadKeys => {
                out.be32(self.generation).counted32(|out| {
                    for key in self.registrations.values() {
                        out.be64(*key);
                    }
                });
            }
            PrInAction::ReadReservation => {
                out.be32(self.generation);
                out.counted32(|out| self.read_reservation(out));
            }
            PrInAction::ReportCapabilities => self.capabilities(&mut out),
            PrInAction::ReadFullStatus => {
                out.be32(self.generation);
                out.counted32(|out| self.full_status(out));
            }
        }
        out.finish()
    }

    fn read_reservation(&self, out: &mut Writer) {
        let Some(held) = &self.held else {
            return;
        };
        // spec: zero for an all-registrants type, which no single key stands for.
        let holder = held.holder.as_ref();
        let key = holder.and_then(|holder| self.registrations.get(holder));
        out.be64(key.copied().unwrap_or(0)).be32(0).u8(0);
        // LU_SCOPE.
        out.u8(held.kind.code()).be16(0);
    }

    fn capabilities(&self, out: &mut Writer) {
        out.be16(8);
        // CRH, SIP_C, ATP_C, PTPL_C.
        out.u8(0x1d);
        // TMV, ALLOW COMMANDS 001b, PTPL_A.
        out.u8(0x90 | flag(self.persistent, 0));
        // All six types.
        out.u8(0xea).u8(0x01).be16(0);
    }

    fn full_status(&self, out: &mut Writer) {
        for (nexus, key) in &self.registrations {
            let holds = self.is_holder(nexus);
            let kind = self.reservation_type().filter(|_| holds);
            out.be64(*key).be32(0);
            // ALL_TG_PT is zero: each registration is listed with its own port.
            out.u8(flag(holds, 0));
            out.u8(kind.map_or(0, super::ReservationType::code));
            out.be32(0).be16(nexus.target_port);
            out.counted32(|out| {
                out.bytes(&nexus.initiator.transport_id());
            });
        }
    }
}
