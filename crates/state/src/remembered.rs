//! What the members of pools were when they were there last, kept in `state_dir/pools` for when one
//! of them is away.

use env::CoreHandle;
use env::durable::{make_dir, read_file, replace_file};
use manifest::document::{self, DocumentError};
use members::MemberId;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use units::hex;

/// The longest record that is read back.
const RECORD_BYTES_MAX: u64 = 1 << 20;

/// The kind of the file, as its first line says.
const KIND: &str = "members";

/// The directory in the state directory.
const DIRECTORY: &str = "pools";

/// What a member was when it was there last.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Remembered {
    id: String,
    /// The path of its device or file.
    pub path: String,
    /// The serial number of its device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<String>,
}

impl Remembered {
    /// A member that is there.
    #[must_use]
    pub fn of(id: MemberId, path: String, serial: Option<String>) -> Self {
        let id = hex(&id.0);
        Self { id, path, serial }
    }

    /// The one with this number.
    #[must_use]
    pub fn find(all: &[Self], id: MemberId) -> Option<Self> {
        let id = hex(&id.0);
        all.iter().find(|it| it.id == id).cloned()
    }
}

/// The record of a pool.
#[must_use]
pub fn file(state_dir: &Path, pool: &str) -> PathBuf {
    state_dir.join(DIRECTORY).join(format!("{pool}.json"))
}

/// Where is kept what else belongs to LUNs in a pool of members.
#[must_use]
pub fn sidecar(state_dir: &Path, pool: &str) -> PathBuf {
    state_dir.join(DIRECTORY).join(pool)
}

/// Reads a record.
///
/// # Errors
/// It is not there, cannot be read, or is none.
pub async fn read(core: &CoreHandle, file: &Path) -> io::Result<Vec<Remembered>> {
    let text = read_file(&*core.files(), file, RECORD_BYTES_MAX).await?;
    parse(&text).map_err(io::Error::other)
}

/// A record, from its file.
fn parse(text: &[u8]) -> Result<Vec<Remembered>, DocumentError> {
    document::parse_or_bare(KIND, text)
}

/// Writes a record.
///
/// # Errors
/// What the system says; the one before is still there.
///
/// # Panics
/// If it is in no directory: [`file()`] says where it is.
pub async fn write(core: &CoreHandle, file: &Path, all: &[Remembered]) -> io::Result<()> {
    let text = serde_json::to_vec(all).expect("plain words");
    let directory = file.parent().expect("it was joined to one");
    make_dir(&*core.files(), directory).await?;
    replace_file(&*core.files(), file, &document::write(KIND, &text)).await
}

/// The kind of the record of a pool that is a directory.
const DIRECTORY_KIND: &str = "directory";

/// Which pool a directory is.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Number {
    number: String,
}

fn number_file(state_dir: &Path, pool: &str) -> PathBuf {
    state_dir.join(DIRECTORY).join(format!("{pool}.directory"))
}

/// The number that a pool had that is a directory; `None`: nobody knows.
pub async fn number(core: &CoreHandle, state_dir: &Path, pool: &str) -> Option<[u8; 16]> {
    let file = number_file(state_dir, pool);
    let text = read_file(&*core.files(), &file, RECORD_BYTES_MAX).await;
    let known: Number = document::parse(DIRECTORY_KIND, &text.ok()?).ok()?;
    let number = u128::from_str_radix(&known.number, 16).ok()?;
    Some(number.to_be_bytes())
}

/// Writes down the number of a pool that is a directory, where it is another one than before.
///
/// # Errors
/// What the system says; what was known before is still known.
///
/// # Panics
/// Never: it is one plain word, in a directory of the state directory.
pub async fn write_number(
    core: &CoreHandle,
    state_dir: &Path,
    pool: &str,
    number: [u8; 16],
) -> io::Result<()> {
    if self::number(core, state_dir, pool).await == Some(number) {
        return Ok(());
    }
    let number = hex(&number);
    let text = serde_json::to_vec(&Number { number }).expect("a plain word");
    let file = number_file(state_dir, pool);
    let directory = file.parent().expect("it was joined to one");
    make_dir(&*core.files(), directory).await?;
    replace_file(
        &*core.files(),
        &file,
        &document::write(DIRECTORY_KIND, &text),
    )
    .await
}

/// The pool that one of these members is of, by its name, with what is known of its members.
pub async fn of_members(
    core: &CoreHandle,
    state_dir: &Path,
    members: &[MemberId],
) -> Option<(String, Vec<Remembered>)> {
    let directory = state_dir.join(DIRECTORY);
    let mut entries = core.files().list(&directory).await.ok()?;
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    for entry in entries {
        let name = entry.name.to_str();
        let Some(pool) = name.and_then(|name| name.strip_suffix(".json")) else {
            continue;
        };
        // One that cannot be read names nobody, and all else is the same.
        let all = read(core, &file(state_dir, pool)).await.unwrap_or_default();
        if members
            .iter()
            .any(|id| Remembered::find(&all, *id).is_some())
        {
            return Some((pool.to_owned(), all));
        }
    }
    None
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written_also_before_it_had_a_checksum_and_never_when_it_is_damaged()
     {
        let member = |id, serial: Option<&str>| {
            let serial = serial.map(ToOwned::to_owned);
            Remembered::of(MemberId([id; 16]), format!("/dev/{id}"), serial)
        };
        let all = vec![member(1, Some("S1")), member(2, None)];
        let bare = serde_json::to_vec(&all).unwrap();
        let whole = document::write(KIND, &bare);
        assert!(whole.starts_with(b"causeway members 1 sha256 "));
        assert_eq!(parse(&bare).as_ref(), Ok(&all));
        assert_eq!(parse(&whole).as_ref(), Ok(&all));
        assert_eq!(
            Remembered::find(&all, MemberId([2; 16])),
            Some(all[1].clone())
        );
        for end in 0..whole.len() {
            assert!(parse(&whole[..end]).is_err(), "{end} bytes");
        }
        for at in 0..whole.len() {
            let mut hurt = whole.clone();
            hurt[at] ^= 1;
            assert!(parse(&hurt).is_err(), "byte {at}");
        }
        let later = String::from_utf8(whole)
            .unwrap()
            .replace("members 1", "members 2");
        assert_eq!(parse(later.as_bytes()), Err(DocumentError::Newer));
    }
}
