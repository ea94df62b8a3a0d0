//! An NBD client of the simplest kind: one request at a time, simple replies.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;

pub(crate) struct Client {
    stream: UnixStream,
    size: u64,
}

impl Client {
    /// Connects, and chooses the export in the old way.
    pub(crate) fn connect(path: &Path) -> Self {
        let mut stream = UnixStream::connect(path).expect("somebody listens");
        let mut greeting = [0; 18];
        stream.read_exact(&mut greeting).expect("a server greets");
        assert_eq!(greeting[..16], *b"NBDMAGICIHAVEOPT");
        // Fixed newstyle without zeroes, then NBD_OPT_EXPORT_NAME with an empty name.
        let talk = [
            &3_u32.to_be_bytes()[..],
            b"IHAVEOPT",
            &1_u32.to_be_bytes(),
            &[0; 4],
        ]
        .concat();
        stream.write_all(&talk).expect("it listens");
        let mut export = [0; 10];
        stream.read_exact(&mut export).expect("it has the export");
        let size = u64::from_be_bytes(export[..8].try_into().expect("eight bytes"));
        Self { stream, size }
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    fn ask(
        &mut self,
        kind: u16,
        fua: bool,
        offset: u64,
        length: usize,
        data: &[u8],
    ) -> Result<(), Option<u32>> {
        let length = u32::try_from(length).expect("a small request");
        let head = [
            &0x2560_9513_u32.to_be_bytes()[..],
            &u16::from(fua).to_be_bytes(),
            &kind.to_be_bytes(),
            &offset.to_be_bytes(),
            &offset.to_be_bytes(),
            &length.to_be_bytes(),
            data,
        ];
        self.stream.write_all(&head.concat()).map_err(|_| None)?;
        let mut reply = [0; 16];
        self.stream.read_exact(&mut reply).map_err(|_| None)?;
        assert_eq!(reply[..4], 0x6744_6698_u32.to_be_bytes());
        assert_eq!(
            reply[8..],
            offset.to_be_bytes(),
            "the answer to this request"
        );
        match u32::from_be_bytes(reply[4..8].try_into().expect("four bytes")) {
            0 => Ok(()),
            error => Err(Some(error)),
        }
    }

    /// `Err(None)` where the connection has ended.
    pub(crate) fn write(&mut self, at: u64, data: &[u8], fua: bool) -> Result<(), Option<u32>> {
        self.ask(1, fua, at, data.len(), data)
    }

    pub(crate) fn read(&mut self, at: u64, length: usize) -> Vec<u8> {
        self.try_read(at, length).expect("it can be read")
    }

    pub(crate) fn try_read(&mut self, at: u64, length: usize) -> Result<Vec<u8>, Option<u32>> {
        self.ask(0, false, at, length, &[])?;
        let mut data = vec![0; length];
        self.stream.read_exact(&mut data).map_err(|_| None)?;
        Ok(data)
    }
}
