//! The support bundle: one file that says how a node is, for whoever helps from afar.
//!
//! ```text
//!   answers of the API (ASKED), facts of the system (SYSTEM), the log's end
//!       --redacted, bounded--> Bundle --> one .tar.gz
//! ```
//!
//! **Contract.** Nothing secret gets in: of documents members are removed whose names say that they
//! are secret; of all texts what an address has behind its host, what follows a word such as
//! `password=` or `Bearer`, and every secret that the node knows of, wherever it stands. No file
//! has more than [`FILE_BYTES_MAX`] bytes, and all together no more than [`ALL_BYTES_MAX`]; what
//! was left out is named in the first file. Pure but for [`system_facts`] and [`save()`].

mod archive;
mod asked;
mod bundle;
mod redact;
mod save;
mod system;

pub use asked::{ASKED, Asked};
pub use bundle::{ALL_BYTES_MAX, Bundle, FILE_BYTES_MAX};
pub use redact::Secrets;
pub use save::{file_named, save};
pub use system::system_facts;

#[cfg(test)]
mod test;
