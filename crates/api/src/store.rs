//! The accounts that are in force, and their file.
//!
//! **Failure model.** A change is in force when it is stored, and not before. A file that cannot be
//! read is never written over: nobody logs in, and the unix socket and the token of `api.token`
//! work.

use crate::outside::{now, random};
use accounts::{
    Accounts, Document, Edit, FIRST_USER, Moment, PasswordHash, Role, SessionTimes, password,
};
use controller::StateFiles;
use manifest::code::Code;
use manifest::problem::Problem;
use manifest::secret::Secret;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Semaphore;

/// Where users and tokens are, in the state directory.
pub(crate) const FILE: &str = "accounts.json";

/// Where the first password is until it was changed.
pub const FIRST_PASSWORD_FILE: &str = "first-password";

/// So many passwords are hashed at a time: each takes a processor and 19 MiB.
const HASHING_MAX: usize = 2;

/// The accounts of the node.
pub(crate) struct Store {
    accounts: Mutex<Accounts>,
    damage: Option<Problem>,
    files: StateFiles,
    /// Held by whoever changes something, from before it is planned until it is in force.
    changing: tokio::sync::Mutex<()>,
    hashing: Semaphore,
}

impl Store {
    /// Reads what is stored; where nothing is, makes a first user with a random password.
    ///
    /// # Errors
    /// The files can neither be read nor made.
    pub(crate) async fn open(files: StateFiles, times: SessionTimes) -> Result<Self, Problem> {
        let with = |document| Mutex::new(Accounts::new(document).with_times(times));
        let mut store = Self {
            accounts: with(Document::default()),
            damage: None,
            files,
            changing: tokio::sync::Mutex::default(),
            hashing: Semaphore::new(HASHING_MAX),
        };
        let Some(bytes) = store.files.read(FILE).await? else {
            store.make_first_user().await?;
            return Ok(store);
        };
        match Document::read(&bytes) {
            Ok(document) => {
                store.accounts = with(document);
                // An earlier life may have ended before it was removed.
                if !store.has_first_password() {
                    store.forget_first_password().await;
                }
            }
            Err(problem) => {
                let path = store.files.path(FILE);
                let detail = format!("{}: {}", path.display(), problem.detail);
                let problem = Problem::new(problem.code, detail);
                tracing::error!(code = %problem.code, "{problem}");
                store.damage = Some(problem);
            }
        }
        Ok(store)
    }

    /// The password is in its file before the user is there, so that it is never lost.
    async fn make_first_user(&self) -> Result<(), Problem> {
        let password = password::random(&mut random);
        let mut text = password.reveal().to_vec();
        text.push(b'\n');
        self.files.write(FIRST_PASSWORD_FILE, text).await?;
        let first = Edit::CreateUser {
            name: FIRST_USER.to_owned(),
            role: Role::Admin,
            hash: self.hash(password).await?,
            must_change: true,
        };
        self.change(&first, false).await?;
        tracing::info!(
            "the first user is \"{FIRST_USER}\"; the first password is in {}, and has to be changed at the first login",
            self.files.path(FIRST_PASSWORD_FILE).display()
        );
        Ok(())
    }

    /// The accounts, for a moment.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Accounts> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why nobody can log in, where that is so.
    pub(crate) fn whole(&self) -> Result<(), Problem> {
        self.damage.clone().map_or(Ok(()), Err)
    }

    /// Makes a change and stores it; or only says whether it can be made.
    pub(crate) async fn change(&self, edit: &Edit, dry_run: bool) -> Result<Document, Problem> {
        self.change_if(edit, dry_run, |_| Ok(())).await
    }

    /// The same where `check` allows it of what is there then.
    pub(crate) async fn change_if(
        &self,
        edit: &Edit,
        dry_run: bool,
        check: impl FnOnce(&Document) -> Result<(), Problem>,
    ) -> Result<Document, Problem> {
        self.whole()?;
        let _one_at_a_time = self.changing.lock().await;
        check(self.lock().document())?;
        let after = self.lock().document().edit(edit, now().seconds())?;
        if !dry_run {
            self.files.write(FILE, after.write()).await?;
            let had_first = self.has_first_password();
            self.lock().adopt(after.clone());
            if had_first && !self.has_first_password() {
                self.forget_first_password().await;
            }
        }
        Ok(after)
    }

    /// Stores when tokens were used, where that is worth it. It is no loss where that fails.
    pub(crate) async fn store_uses(&self) {
        let edit = self.lock().uses_to_store();
        let edit = edit.filter(|_| self.damage.is_none());
        if let Some(edit) = edit
            && let Err(problem) = self.change(&edit, false).await
        {
            tracing::warn!(code = %problem.code, "when tokens were used is not stored: {problem}");
        }
    }

    /// The principal that holds this token, where it is one that is in force; notes the use.
    pub(crate) fn token(&self, secret: &Secret, at: Moment) -> Option<accounts::Principal> {
        self.lock().token(secret, at)
    }

    /// Identifier and name of the token that this was while it lasted.
    pub(crate) fn ended_token(&self, secret: &Secret) -> Option<(String, String)> {
        let accounts = self.lock();
        let token = accounts.token_that_was(secret)?;
        Some((token.id.clone(), token.name.clone()))
    }

    /// Nobody has changed the password that the daemon made for its first user.
    pub(crate) fn has_first_password(&self) -> bool {
        self.lock().document().with_first_password().is_some()
    }

    /// The first password is of no use any more.
    async fn forget_first_password(&self) {
        if let Err(problem) = self.files.remove(FIRST_PASSWORD_FILE).await {
            tracing::warn!(code = %problem.code, "{problem}");
        }
    }

    /// Hashes a password on a thread that may block.
    pub(crate) async fn hash(&self, password: Secret) -> Result<PasswordHash, Problem> {
        let mut salt = [0; password::SALT_BYTES];
        random(&mut salt);
        self.blocking(move || password::hash(&password, salt))
            .await?
    }

    /// Verifies a password on a thread that may block.
    pub(crate) async fn verify(
        &self,
        password: Secret,
        hash: PasswordHash,
    ) -> Result<bool, Problem> {
        self.blocking(move || password::verify(&password, &hash))
            .await
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let failed = |why: String| Problem::new(Code::Internal, why);
        let place = self.hashing.acquire().await;
        let _place = place.map_err(|error| failed(error.to_string()))?;
        let done = tokio::task::spawn_blocking(work).await;
        done.map_err(|error| failed(error.to_string()))
    }
}
