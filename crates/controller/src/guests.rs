//! Guests: initiators of the daemon's own making that reach one LUN through a target of their own
//! for a time, such as a bench.
//!
//! **Contract.** A guest is in no stored object, no generation, no export and no list of objects:
//! it is put over the objects that the engine gets, and a daemon that is killed has none any more.
//! It needs a secret that only its program has. A read-only guest is one by its grant, whatever its
//! program does.

use super::Controller;
use manifest::code::Code;
use manifest::facts::LunState;
use manifest::objects::{Chap, Grant, GrantKey, Host, MAINTENANCE_GRACE_SECONDS, Objects, Target};
use manifest::plan::LunChanges;
use manifest::problem::Problem;
use manifest::secret::Secret;
use manifest::size::Size;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::rc::Rc;

/// What sessions of guests have as host and as target. No object can be called so.
pub const GUEST: &str = "(bench)";

/// By which number a guest knows its LUN.
const LUN_ID: u16 = 0;

/// An initiator that reaches one LUN.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Guest {
    /// The LUN's name.
    pub lun: String,
    /// Its iSCSI name.
    pub initiator: String,
    /// The name of the target that is there for it alone.
    pub target: String,
    /// Where it reaches that.
    pub portal_group: String,
    /// Who it is to CHAP.
    pub user: String,
    /// What proves it.
    pub secret: Secret,
    /// It may not write.
    pub read_only: bool,
}

/// What a guest would find.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// How large the LUN is.
    pub size: Size,
    /// Where it would be reached.
    pub portal_group: String,
    /// Addresses that listen in that group, as this machine reaches them.
    pub portals: Vec<SocketAddr>,
    /// Sessions of hosts that may use it, by host.
    pub sessions: Vec<(String, u64)>,
    /// A target that hosts reach it by, and its number there.
    pub granted: Option<(String, u16)>,
}

impl Controller {
    /// What a guest of this LUN would find.
    ///
    /// # Errors
    /// There is no such LUN, it is offline, or nothing is listened at.
    pub async fn inspect_for_guest(&self, lun: &str) -> Result<Found, Problem> {
        let objects = self.objects();
        let known = objects.luns.get(lun);
        let known = known.ok_or_else(|| Problem::not_found("lun", lun))?;
        let facts = self.engine.luns().await;
        if let Some(LunState::Offline(why)) = facts.get(&known.naa).map(|it| &it.state) {
            let detail = format!("LUN {lun} is offline: {why}");
            return Err(Problem::new(Code::LunOffline, detail));
        }
        let grants: Vec<&GrantKey> = objects.grants_of_lun(lun).collect();
        let groups = grants
            .iter()
            .filter_map(|key| objects.targets.get(&key.target))
            .map(|target| target.portal_group.clone())
            .chain(self.config.portal_groups.iter().map(|it| it.name.clone()));
        let all = self.engine.portals().await;
        let portals_of = |group: &str| {
            let own = all
                .iter()
                .filter(|it| it.group == group && it.problem.is_none());
            let own = own.filter_map(|it| it.address.parse().ok());
            let mut out: Vec<SocketAddr> = own.map(reachable).collect();
            out.sort();
            out.dedup();
            out
        };
        let mut found = groups.map(|group| (portals_of(&group), group));
        let (portals, portal_group) =
            found
                .find(|(portals, _)| !portals.is_empty())
                .ok_or_else(|| {
                    let detail = "this node listens at no portal";
                    Problem::new(Code::VolumeUnreachable, detail)
                        .hint("see [[portal_group]] in node.toml, and `causeway status`")
                })?;
        let granted = grants.iter().find_map(|key| {
            let target = objects.targets.get(&key.target)?;
            Some((target.iqn.clone(), objects.grants.get(key)?.lun_id))
        });
        let sessions = self.sessions_at(&grants).await;
        Ok(Found {
            size: known.size,
            portal_group,
            portals,
            sessions,
            granted,
        })
    }

    /// Sessions of hosts that have one of these grants.
    async fn sessions_at(&self, grants: &[&GrantKey]) -> Vec<(String, u64)> {
        let mut out: Vec<(String, u64)> = Vec::new();
        for session in self.engine.sessions().await {
            let target = session.target.as_deref();
            let has = grants
                .iter()
                .any(|key| key.host == session.host && Some(key.target.as_str()) == target);
            if !has {
                continue;
            }
            match out.iter_mut().find(|(host, _)| *host == session.host) {
                Some((_, count)) => *count += 1,
                None => out.push((session.host, 1)),
            }
        }
        out
    }

    /// Lets a guest in; it may log in when this returns.
    ///
    /// # Errors
    /// There is no such LUN any more, or no change is taken.
    pub async fn admit(&self, guest: Guest) -> Result<(), Problem> {
        let _no_change_meanwhile = self.store.lock().await;
        if self.is_stopping() {
            return Err(Problem::new(Code::Stopping, "the daemon is stopping"));
        }
        if let Some(problem) = self.damage().or(self.cut_off().as_ref()) {
            return Err(problem.clone());
        }
        if !self.objects().luns.contains_key(&guest.lun) {
            return Err(Problem::not_found("lun", &guest.lun));
        }
        self.guests.borrow_mut().push(guest);
        self.publish().await
    }

    /// Ends the sessions of a guest, by its target; it does not come in any more.
    pub async fn dismiss(&self, target: &str) {
        let _no_change_meanwhile = self.store.lock().await;
        self.guests.borrow_mut().retain(|it| it.target != target);
        if self.is_stopping() || self.cut_off().is_some() {
            return;
        }
        if let Err(problem) = self.publish().await {
            tracing::warn!("after a guest has gone: {problem}");
        }
    }

    /// Gives the engine the objects that are in force, with guests. Whoever calls it holds the
    /// store.
    async fn publish(&self) -> Result<(), Problem> {
        let objects = self.with_guests(&self.objects());
        self.half_done.set(true);
        let adopted = self
            .engine
            .adopt(objects, Rc::new(LunChanges::default()))
            .await;
        self.half_done.set(false);
        adopted
    }

    /// The objects as the engine gets them.
    pub(crate) fn with_guests(&self, objects: &Rc<Objects>) -> Rc<Objects> {
        let guests = self.guests.borrow();
        let mut out = Rc::clone(objects);
        for (number, guest) in guests.iter().enumerate() {
            if objects.luns.contains_key(&guest.lun) {
                put(guest, number as u64, Rc::make_mut(&mut out));
            }
        }
        out
    }
}

/// Where a listener on every address is reached from this machine.
pub(crate) fn reachable(at: SocketAddr) -> SocketAddr {
    let ip = match at.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip @ (IpAddr::V4(_) | IpAddr::V6(_)) => ip,
    };
    SocketAddr::new(ip, at.port())
}

fn put(guest: &Guest, number: u64, objects: &mut Objects) {
    // Identifiers of objects count from 1 upwards.
    let id = u64::MAX - number;
    let Some(relative_port) = objects.free_relative_port(id) else {
        return;
    };
    let name = match number {
        0 => GUEST.to_owned(),
        _ => format!("{GUEST} {number}"),
    };
    let target = Target {
        id,
        relative_port,
        iqn: guest.target.clone(),
        portal_group: guest.portal_group.clone(),
        redirect: None,
        maintenance: false,
        maintenance_grace_seconds: MAINTENANCE_GRACE_SECONDS,
    };
    let chap = Chap {
        user: guest.user.clone(),
        secret: guest.secret.clone(),
        mutual: None,
    };
    let host = Host {
        id,
        iqn: vec![guest.initiator.clone()],
        chap: Some(chap),
        bytes_in_flight_max: None,
    };
    let key = GrantKey {
        host: name.clone(),
        target: name.clone(),
        lun: guest.lun.clone(),
    };
    let grant = Grant {
        lun_id: LUN_ID,
        read_only: guest.read_only,
    };
    objects.targets.insert(name.clone(), target);
    objects.hosts.insert(name, host);
    objects.grants.insert(key, grant);
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn a_listener_on_every_address_is_reached_on_the_loopback_one() {
        let shown = |text: &str| reachable(text.parse().unwrap()).to_string();
        assert_eq!(shown("0.0.0.0:3260"), "127.0.0.1:3260");
        assert_eq!(shown("[::]:3260"), "[::1]:3260");
        assert_eq!(shown("10.0.0.1:3260"), "10.0.0.1:3260");
    }
}
