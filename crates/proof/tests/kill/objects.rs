//! Objects that change while the daemon is killed: what was answered is there afterwards, the one
//! change in flight is there or not, and never by half.

use crate::site::Site;
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// Hosts that every apply changes together.
const HOSTS: u64 = 4;
/// LUNs that are left alone before the oldest is deleted and purged.
const LUNS_KEPT: usize = 4;

/// What must not change while a LUN lives.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Identity {
    naa: String,
    serial: String,
}

/// Where a LUN is on its way, and its identity as soon as that is known.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Life {
    Lives(Option<Identity>),
    Deleted(Option<Identity>),
}

/// LUNs by their number.
type Luns = BTreeMap<u64, Life>;

#[derive(Clone, Debug)]
enum Change {
    Apply(u64),
    Create(u64),
    Delete(u64),
    Purge(u64),
}

/// What should be there.
pub(crate) struct Objects {
    /// What every apply's file holds besides.
    base: String,
    applied: u64,
    luns: Luns,
    next: u64,
    pending: Option<Change>,
    /// Changes that were answered with success.
    pub(crate) acknowledged: u64,
}

fn name(number: u64) -> String {
    format!("made{number}")
}

fn identity(lun: &Json) -> Option<Identity> {
    Some(Identity {
        naa: lun["naa"].as_str()?.to_owned(),
        serial: lun["serial"].as_str()?.to_owned(),
    })
}

impl Objects {
    /// Those of `base`, which a daemon has.
    pub(crate) fn new(base: String) -> Self {
        Self {
            base,
            applied: 0,
            luns: BTreeMap::new(),
            next: 0,
            pending: None,
            acknowledged: 0,
        }
    }

    /// The file of one apply: everything in it carries `number`.
    fn write(&self, site: &Site, number: u64) {
        let mut text = self.base.clone();
        site.write("changing.secret", &format!("the-secret-{number:012}\n"));
        for host in 0..HOSTS {
            text += &format!(
                "[[host]]\nname = \"changing{host}\"\niqn = [\"iqn.2026-11.io.causeway:h{host}-{number}\"]\n\
                 chap = {{ user = \"u{number}\", secret_file = \"changing.secret\" }}\n"
            );
        }
        let size = 1 + number;
        text +=
            &format!("[[lun]]\nname = \"changing\"\nsize = \"{size}MiB\"\nbackend = \"memory\"\n");
        site.write("changing.toml", &text);
    }

    fn choose(&mut self) -> Change {
        let lives = |life: &Life| matches!(life, Life::Lives(_));
        let deleted = self.luns.iter().find(|(_, life)| !lives(life));
        if let Some((number, _)) = deleted {
            return Change::Purge(*number);
        }
        self.next += 1;
        match self.next % 2 {
            0 => Change::Apply(self.applied + 1),
            _ if self.luns.len() > LUNS_KEPT => {
                let (oldest, _) = self.luns.first_key_value().expect("some are there");
                Change::Delete(*oldest)
            }
            _ => Change::Create(self.next),
        }
    }

    /// Changes one thing after the other until the daemon does not answer.
    pub(crate) async fn change(&mut self, site: &Site) -> Result<(), String> {
        loop {
            let change = self.choose();
            self.pending = Some(change.clone());
            let command = match &change {
                Change::Apply(number) => {
                    self.write(site, *number);
                    "apply -f changing.toml".to_owned()
                }
                Change::Create(number) => format!("lun create {} --size 1M", name(*number)),
                Change::Delete(number) => format!("lun delete {}", name(*number)),
                Change::Purge(number) => format!("lun purge {} --yes", name(*number)),
            };
            let said = site.run(&command).await;
            match said.code {
                0 => self.done(site, &change).await,
                7 => return Ok(()),
                code => return Err(format!("{command}: exit code {code}\n{}", said.text)),
            }
        }
    }

    async fn done(&mut self, site: &Site, change: &Change) {
        self.acknowledged += 1;
        match change {
            Change::Apply(number) => self.applied = *number,
            Change::Create(number) => {
                // Where the daemon dies before it answers, the identity is the one that is seen
                // first.
                let shown = site.json(&format!("lun show {}", name(*number))).await;
                let identity = shown.ok().as_ref().and_then(identity);
                self.luns.insert(*number, Life::Lives(identity));
            }
            Change::Delete(number) => {
                if let Some(Life::Lives(identity)) = self.luns.remove(number) {
                    self.luns.insert(*number, Life::Deleted(identity));
                }
            }
            Change::Purge(number) => drop(self.luns.remove(number)),
        }
        self.pending = None;
    }

    /// Compares with what a daemon has after a kill.
    pub(crate) async fn check(&mut self, site: &Site) -> Result<(), String> {
        let pending = self.pending.take();
        self.check_applied(site, pending.as_ref()).await?;
        let found = found(site).await?;
        let mut before = self.luns.clone();
        for (number, life) in &mut before {
            if let (Life::Lives(known @ None), Some(Life::Lives(seen))) = (life, found.get(number))
            {
                known.clone_from(seen);
            }
        }
        let after = after(&before, pending.as_ref(), &found);
        if found != before && found != after {
            return Err(format!(
                "LUNs are {found:?},\nshould be {before:?}\nor {after:?}"
            ));
        }
        self.luns = found;
        Ok(())
    }

    /// Everything that an apply changes is of the same apply.
    async fn check_applied(&mut self, site: &Site, pending: Option<&Change>) -> Result<(), String> {
        let mut seen = Vec::new();
        let hosts = site.json("host ls").await?;
        for host in 0..HOSTS {
            let named = |it: &&Json| it["name"] == format!("changing{host}");
            let host = hosts.as_array().into_iter().flatten().find(named);
            let iqn = host.and_then(|it| it["iqn"][0].as_str());
            let number = iqn.and_then(|iqn| iqn.rsplit('-').next());
            seen.push(number.and_then(|it| it.parse::<u64>().ok()).unwrap_or(0));
            let user = host.and_then(|it| it["chap"]["user"].as_str());
            let number = user.and_then(|user| user.strip_prefix('u'));
            seen.push(number.and_then(|it| it.parse::<u64>().ok()).unwrap_or(0));
        }
        let luns = site.json("lun ls").await?;
        let named = |it: &&Json| it["name"] == "changing";
        let lun = luns.as_array().into_iter().flatten().find(named);
        let size = lun.and_then(|it| it["size"].as_u64()).unwrap_or(1 << 20);
        seen.push((size >> 20) - 1);
        let possible = match pending {
            Some(Change::Apply(number)) => vec![self.applied, *number],
            Some(Change::Create(_) | Change::Delete(_) | Change::Purge(_)) | None => {
                vec![self.applied]
            }
        };
        let first = seen[0];
        if seen.iter().any(|number| *number != first) || !possible.contains(&first) {
            return Err(format!("applied: {seen:?}, should be one of {possible:?}"));
        }
        self.applied = first;
        Ok(())
    }
}

/// The LUNs that a daemon has.
async fn found(site: &Site) -> Result<Luns, String> {
    let mut found = Luns::new();
    let lists = [
        ("lun ls", Life::Lives as fn(Option<Identity>) -> Life),
        ("lun ls --removed", Life::Deleted),
    ];
    for (list, make) in lists {
        let list = site.json(list).await?;
        for lun in list.as_array().into_iter().flatten() {
            if lun["state"] == "offline" {
                return Err(format!("LUN {} is offline: {}", lun["name"], lun["reason"]));
            }
            let number = lun["name"].as_str().and_then(|it| it.strip_prefix("made"));
            if let Some(number) = number.and_then(|it| it.parse().ok()) {
                found.insert(number, make(identity(lun)));
            }
        }
    }
    Ok(found)
}

/// What the LUNs are once a change that was in flight is done.
fn after(before: &Luns, pending: Option<&Change>, found: &Luns) -> Luns {
    let mut after = before.clone();
    match pending {
        Some(Change::Create(number)) => {
            if let Some(Life::Lives(identity)) = found.get(number) {
                after.insert(*number, Life::Lives(identity.clone()));
            }
        }
        Some(Change::Delete(number)) => {
            if let Some(Life::Lives(identity)) = after.remove(number) {
                after.insert(*number, Life::Deleted(identity));
            }
        }
        Some(Change::Purge(number)) => drop(after.remove(number)),
        Some(Change::Apply(_)) | None => {}
    }
    after
}
