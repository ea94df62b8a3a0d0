//! What a host reads of a LUN's write cache, by PDUs written here: nothing of our own initiator
//! or SCSI code judges it.

use crate::login::{Answer, login, number_at, read_pdu};
use std::io::Write;

/// A session that asks LUN 0 for its caching page.
pub(crate) struct CachingPage {
    session: Answer,
    commands: u32,
    stat_sn: u32,
}

/// GOOD.
const GOOD: u8 = 0;
/// CHECK CONDITION.
const CHECK_CONDITION: u8 = 2;

impl CachingPage {
    pub(crate) fn of(portal: &str) -> Self {
        let session = login(portal);
        assert_eq!(session.status, 0);
        let stat_sn = session.stat_sn;
        Self {
            session,
            commands: 0,
            stat_sn,
        }
    }

    /// WCE, after the unit attentions that wait.
    pub(crate) fn write_cache_enabled(&mut self) -> bool {
        for _ in 0..8 {
            if let Ok(enabled) = self.ask() {
                return enabled;
            }
        }
        panic!("unit attentions end");
    }

    /// The unit attention that waits, as its additional sense code and qualifier.
    pub(crate) fn unit_attention(&mut self) -> [u8; 2] {
        self.ask().expect_err("a unit attention waits")
    }

    /// TAS and whether hosts may change it, after the unit attentions that wait.
    ///
    /// spec: SPC-4 7.5.8 "Control mode page"
    pub(crate) fn task_aborted_status(&mut self) -> (bool, bool) {
        let [current, changeable] = [0x0a, 0x4a].map(|page| {
            let asked = (0..8).find_map(|_| self.page(page).ok());
            let page = asked.expect("unit attentions end");
            assert_eq!(page[4] & 0x3f, 0x0a, "{page:02x?}");
            page[4 + 5] & 0x40 != 0
        });
        (current, changeable)
    }

    /// spec: SBC-3 6.5.5 "Caching mode page"
    fn ask(&mut self) -> Result<bool, [u8; 2]> {
        let page = self.page(0x08)?;
        assert_eq!(page[4] & 0x3f, 0x08, "{page:02x?}");
        Ok(page[6] & 0x04 != 0)
    }

    /// Four bytes of header, then the page; or the unit attention that waits.
    ///
    /// spec: SPC-4 6.13 "MODE SENSE (6) command"; `asked`: page control and page code
    fn page(&mut self, asked: u8) -> Result<Vec<u8>, [u8; 2]> {
        const ALLOCATED: u8 = 64;
        let mut pdu = [0; 48];
        pdu[0] = 0x01; // SCSI Command
        pdu[1] = 0xc1; // F, R, simple
        pdu[16..20].copy_from_slice(&(self.commands + 1).to_be_bytes()); // Initiator Task Tag
        pdu[23] = ALLOCATED;
        pdu[24..28].copy_from_slice(&self.commands.to_be_bytes()); // CmdSN
        pdu[28..32].copy_from_slice(&(self.stat_sn + 1).to_be_bytes()); // ExpStatSN
        pdu[32..38].copy_from_slice(&[0x1a, 0x08, asked, 0, ALLOCATED, 0]); // no block descriptor
        self.commands += 1;
        self.session.stream.write_all(&pdu).unwrap();
        let mut page: Vec<u8> = Vec::new();
        loop {
            let (header, data) = read_pdu(&mut self.session.stream);
            let is_data = header[0] & 0x3f == 0x25;
            if is_data {
                page.extend(&data);
            }
            let has_status = !is_data || header[1] & 1 == 1;
            if !has_status {
                continue;
            }
            self.stat_sn = number_at(&header, 24);
            return match header[3] {
                GOOD => Ok(page),
                CHECK_CONDITION => {
                    // Fixed format behind the two bytes of its length.
                    assert_eq!(data[2 + 2] & 0x0f, 6, "UNIT ATTENTION: {data:02x?}");
                    Err([data[2 + 12], data[2 + 13]])
                }
                status => panic!("status {status:02x}"),
            };
        }
    }
}
