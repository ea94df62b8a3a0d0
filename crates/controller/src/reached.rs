//! Where the API listens: whoever serves it says so, and `status` shows it.

use manifest::config::ApiAddress;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Where the API can be reached now. Cloning shares it.
#[derive(Clone, Default, Debug)]
pub struct Reached(Arc<Mutex<Addresses>>);

#[derive(Default, Debug)]
struct Addresses {
    addresses: Vec<String>,
    away: Vec<(String, String)>,
}

impl Reached {
    fn lock(&self) -> MutexGuard<'_, Addresses> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The addresses that listen, usable from any directory.
    #[must_use]
    pub fn addresses(&self) -> Vec<String> {
        self.lock().addresses.clone()
    }

    /// Those that do not, each with the reason.
    #[must_use]
    pub fn away(&self) -> Vec<(String, String)> {
        self.lock().away.clone()
    }

    /// It listens at these from now on, and at those not yet, each with the reason.
    pub fn set(&self, addresses: &[String], away: &[(ApiAddress, String)]) {
        let away = away.iter().map(|(at, why)| (at.to_string(), why.clone()));
        *self.lock() = Addresses {
            addresses: addresses.iter().map(|at| from_anywhere(at)).collect(),
            away: away.collect(),
        };
    }
}

/// The address as it can be used from any directory.
fn from_anywhere(address: &str) -> String {
    let path = address.strip_prefix("unix:").map(std::path::absolute);
    match path {
        Some(Ok(path)) => format!("unix:{}", path.display()),
        Some(Err(_)) | None => address.to_owned(),
    }
}
