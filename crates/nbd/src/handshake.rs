//! The negotiation: options in, answers out.
//!
//! Spec: "Fixed newstyle negotiation", "Option types", "Option reply types".

use crate::export::Export;
use crate::wire::{
    ALLOCATION, INIT_MAGIC, OPTION_MAGIC, OPTION_REPLY_MAGIC, Violation, be16, be32, be64,
};

/// The most bytes that an option may carry: names of 4096 bytes and some queries.
const OPTION_BYTES_MAX: usize = 64 << 10;

/// The most options of one negotiation.
const OPTIONS_MAX: u32 = 1024;

/// The longest string.
const STRING_MAX: usize = 4096;

const FIXED_NEWSTYLE: u16 = 1;
const NO_ZEROES: u16 = 2;

const EXPORT_NAME: u32 = 1;
const ABORT: u32 = 2;
const LIST: u32 = 3;
const INFO: u32 = 6;
const GO: u32 = 7;
const STRUCTURED_REPLY: u32 = 8;
const LIST_META_CONTEXT: u32 = 9;
const SET_META_CONTEXT: u32 = 10;

const REP_ACK: u32 = 1;
const REP_SERVER: u32 = 2;
const REP_INFO: u32 = 3;
const REP_META_CONTEXT: u32 = 4;
const ERR_UNSUP: u32 = (1 << 31) + 1;
const ERR_INVALID: u32 = (1 << 31) + 3;
const ERR_UNKNOWN: u32 = (1 << 31) + 6;

const INFO_EXPORT: u16 = 0;
const INFO_NAME: u16 = 1;
const INFO_DESCRIPTION: u16 = 2;
const INFO_BLOCK_SIZE: u16 = 3;

const CONTEXT: &str = "base:allocation";

/// Bytes of zeroes behind the answer to EXPORT_NAME.
const PADDING: usize = 124;

/// Where a negotiation stands.
#[derive(Clone, Debug)]
pub(crate) struct Handshake {
    greeted: bool,
    no_zeroes: bool,
    options: u32,
    pub(crate) structured: bool,
    pub(crate) allocation: bool,
}

/// What became of some bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HandshakeProgress {
    /// There are not enough of them.
    More,
    /// So many were used, and the negotiation goes on.
    Took(usize),
    /// So many were used, and requests follow.
    Over(usize),
    /// So many were used, and the client goes.
    Left(usize),
}

/// What the server says first.
pub(crate) fn greeting(out: &mut Vec<u8>) {
    out.extend_from_slice(&INIT_MAGIC.to_be_bytes());
    out.extend_from_slice(&OPTION_MAGIC.to_be_bytes());
    out.extend_from_slice(&(FIXED_NEWSTYLE | NO_ZEROES).to_be_bytes());
}

impl Handshake {
    pub(crate) fn new() -> Self {
        Self {
            greeted: false,
            no_zeroes: false,
            options: 0,
            structured: false,
            allocation: false,
        }
    }

    /// Takes what it can of `input`.
    pub(crate) fn step(
        &mut self,
        export: &Export,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<HandshakeProgress, Violation> {
        if !self.greeted {
            return self.client_flags(input);
        }
        let (Some(magic), Some(option), Some(length)) =
            (be64(input, 0), be32(input, 8), be32(input, 12))
        else {
            return Ok(HandshakeProgress::More);
        };
        if magic != OPTION_MAGIC {
            return Err(Violation("an option does not begin with IHAVEOPT"));
        }
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if length > OPTION_BYTES_MAX {
            return Err(Violation("an option is too long"));
        }
        let Some(data) = input.get(16..16 + length) else {
            return Ok(HandshakeProgress::More);
        };
        self.options += 1;
        if self.options > OPTIONS_MAX {
            return Err(Violation("too many options"));
        }
        Ok(self.option(export, option, data, out, 16 + length))
    }

    fn client_flags(&mut self, input: &[u8]) -> Result<HandshakeProgress, Violation> {
        let Some(flags) = be32(input, 0) else {
            return Ok(HandshakeProgress::More);
        };
        if flags & !u32::from(FIXED_NEWSTYLE | NO_ZEROES) != 0 {
            return Err(Violation("unknown client flags"));
        }
        self.greeted = true;
        self.no_zeroes = flags & u32::from(NO_ZEROES) != 0;
        Ok(HandshakeProgress::Took(4))
    }

    fn option(
        &mut self,
        export: &Export,
        option: u32,
        data: &[u8],
        out: &mut Vec<u8>,
        used: usize,
    ) -> HandshakeProgress {
        match option {
            EXPORT_NAME => return self.export_name(export, data, out, used),
            ABORT => {
                answer(out, option, REP_ACK, &[]);
                return HandshakeProgress::Left(used);
            }
            LIST if data.is_empty() => {
                // The length of a name that is empty, then words for people.
                let mut entry = vec![0; 4];
                entry.extend_from_slice(export.description.as_bytes());
                answer(out, option, REP_SERVER, &entry);
                answer(out, option, REP_ACK, &[]);
            }
            STRUCTURED_REPLY if data.is_empty() => {
                self.structured = true;
                answer(out, option, REP_ACK, &[]);
            }
            INFO | GO => {
                let known = self.info(export, option, data, out);
                if known && option == GO {
                    return HandshakeProgress::Over(used);
                }
            }
            LIST_META_CONTEXT | SET_META_CONTEXT => self.contexts(option, data, out),
            LIST | STRUCTURED_REPLY => answer(out, option, ERR_INVALID, b"it carries no data"),
            _ => answer(out, option, ERR_UNSUP, b""),
        }
        HandshakeProgress::Took(used)
    }

    /// Answered without a reply head, or by closing the connection.
    fn export_name(
        &self,
        export: &Export,
        data: &[u8],
        out: &mut Vec<u8>,
        used: usize,
    ) -> HandshakeProgress {
        if !data.is_empty() {
            return HandshakeProgress::Left(used);
        }
        out.extend_from_slice(&export.size().to_be_bytes());
        out.extend_from_slice(&export.flags(self.structured).to_be_bytes());
        if !self.no_zeroes {
            out.extend_from_slice(&[0; PADDING]);
        }
        HandshakeProgress::Over(used)
    }

    /// Says whether the export was found.
    fn info(&self, export: &Export, option: u32, data: &[u8], out: &mut Vec<u8>) -> bool {
        let Some((name, rest)) = string(data) else {
            answer(out, option, ERR_INVALID, b"the name is cut");
            return false;
        };
        let count = be16(rest, 0).map(usize::from);
        if count.is_none_or(|count| rest.len() != 2 + 2 * count) {
            answer(out, option, ERR_INVALID, b"the list of requests is cut");
            return false;
        }
        if !name.is_empty() {
            answer(
                out,
                option,
                ERR_UNKNOWN,
                b"the only export has an empty name",
            );
            return false;
        }
        let wanted = |kind: u16| {
            rest.get(2..)
                .into_iter()
                .flat_map(|all| all.chunks_exact(2))
                .any(|one| one == kind.to_be_bytes())
        };
        let inform = |out: &mut Vec<u8>, kind: u16, parts: &[&[u8]]| {
            let all = [&[&kind.to_be_bytes()[..]], parts].concat().concat();
            answer(out, option, REP_INFO, &all);
        };
        let (size, flags) = (
            export.size().to_be_bytes(),
            export.flags(self.structured).to_be_bytes(),
        );
        inform(out, INFO_EXPORT, &[&size, &flags]);
        // Sent whether asked for or not: requests that do not fit are refused in any case.
        let [least, preferred, most] = export.block_sizes().map(u32::to_be_bytes);
        inform(out, INFO_BLOCK_SIZE, &[&least, &preferred, &most]);
        if wanted(INFO_NAME) {
            inform(out, INFO_NAME, &[]);
        }
        if wanted(INFO_DESCRIPTION) {
            inform(out, INFO_DESCRIPTION, &[export.description.as_bytes()]);
        }
        answer(out, option, REP_ACK, &[]);
        true
    }

    fn contexts(&mut self, option: u32, data: &[u8], out: &mut Vec<u8>) {
        let setting = option == SET_META_CONTEXT;
        if setting {
            // A new choice replaces the one before, even where it fails.
            self.allocation = false;
        }
        let refuse = |out: &mut Vec<u8>, why: &[u8]| answer(out, option, ERR_INVALID, why);
        if !self.structured {
            return refuse(out, b"structured replies come first");
        }
        let Some((name, rest)) = string(data) else {
            return refuse(out, b"the name is cut");
        };
        let Some(queries) = queries(rest) else {
            return refuse(out, b"the list of queries is cut");
        };
        if !name.is_empty() {
            return answer(
                out,
                option,
                ERR_UNKNOWN,
                b"the only export has an empty name",
            );
        }
        let context = CONTEXT.as_bytes();
        let asked = queries.contains(&context);
        let all =
            !setting && (queries.is_empty() || queries.iter().any(|query| *query == b"base:"));
        if asked || all {
            let id = if setting { ALLOCATION } else { 0 };
            let found = [&id.to_be_bytes()[..], context].concat();
            answer(out, option, REP_META_CONTEXT, &found);
            self.allocation |= setting;
        }
        answer(out, option, REP_ACK, &[]);
    }
}

/// A string with its length before it, and what follows.
fn string(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = usize::try_from(be32(data, 0)?).ok()?;
    if length > STRING_MAX {
        return None;
    }
    data.get(4..)?.split_at_checked(length)
}

fn queries(data: &[u8]) -> Option<Vec<&[u8]>> {
    let count = be32(data, 0)?;
    let mut rest = data.get(4..)?;
    let mut all = Vec::new();
    for _ in 0..count {
        let (query, after) = string(rest)?;
        all.push(query);
        rest = after;
    }
    rest.is_empty().then_some(all)
}

fn answer(out: &mut Vec<u8>, option: u32, kind: u32, data: &[u8]) {
    out.extend_from_slice(&OPTION_REPLY_MAGIC.to_be_bytes());
    out.extend_from_slice(&option.to_be_bytes());
    out.extend_from_slice(&kind.to_be_bytes());
    let length = u32::try_from(data.len()).unwrap_or(0);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(data);
}
