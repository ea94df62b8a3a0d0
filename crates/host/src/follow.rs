//! What becomes of ports while a volume is open: carriers and addresses of this host, new ports of
//! it, and new portals of the target.
//!
//! A new pair of ports joins the volume as a path more; whether it is used is the plan's. A pair
//! whose host port has another address goes on from there under its own ISID. What is gone stays in
//! the list, and is down.

use crate::discover::{Ask, portals};
use crate::home::Home;
use crate::joining::{PortNumbers, configs, paths};
use crate::ports::{facts, host_ports, interface};
use crate::prepare::{Candidate, Prepared};
use env::CoreHandle;
use iscsi::Lun;
use machine::{Change, Follower};
use multipath::Multipath;
use std::future::{Future, poll_fn};
use std::io;
use std::net::IpAddr;
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::task::Poll;
use std::time::Duration;
use units::Now;

/// What is needed for it.
pub(crate) struct Following {
    pub(crate) prepared: Prepared,
    pub(crate) numbers: PortNumbers,
    /// `--from`: this host's ports that may be used, by name or address; empty: all.
    pub(crate) from: Vec<String>,
    /// The unit, and the time limit of its commands.
    pub(crate) target: (Lun, Duration),
    /// How often the target is asked for its portals.
    pub(crate) rediscover: Option<Duration>,
}

/// Follows for as long as the volume lives.
pub(crate) fn follow(core: &CoreHandle, home: &Rc<Home>, mut following: Following) {
    let home: Weak<Home> = Rc::downgrade(home);
    let here = Rc::clone(core);
    core.spawn(Box::pin(async move {
        let pause = following.rediscover;
        let mut ask_at = pause.map(|it| here.now().after(it));
        loop {
            let seen = next(&here, &mut following.prepared.follower, ask_at).await;
            let Some(home) = home.upgrade().filter(|it| !it.stopped.get()) else {
                return;
            };
            let Some(layer) = home.layer() else { return };
            match seen {
                Some(Ok(changes)) => links(&home, &layer, &changes),
                Some(Err(_)) => return,
                None => {
                    ask_at = pause.map(|it| here.now().after(it));
                    if !following.discover(&here).await {
                        continue;
                    }
                }
            }
            following.renew(&here, &home, &layer).await;
        }
    }));
}

/// The next change of this host's ports, or none by `until`.
async fn next(
    core: &CoreHandle,
    follower: &mut Follower,
    until: Option<Now>,
) -> Option<io::Result<Vec<Change>>> {
    let mut changed = pin!(follower.changed());
    let mut timer = until.map(|at| core.sleep_until(at));
    poll_fn(|cx| match changed.as_mut().poll(cx) {
        Poll::Ready(changes) => Poll::Ready(Some(changes)),
        Poll::Pending => match &mut timer {
            Some(timer) => timer.as_mut().poll(cx).map(|()| None),
            None => Poll::Pending,
        },
    })
    .await
}

fn links(home: &Home, layer: &Multipath, changes: &[Change]) {
    for change in changes {
        let (port, up) = match change {
            Change::LinkLost(port) => (port, false),
            Change::LinkBack(port) | Change::Addresses(port) => (port, true),
            Change::Facts(_) => continue,
        };
        let of_port: Vec<usize> = {
            let paths = home.paths.borrow();
            let numbers = paths.iter().enumerate();
            let of_port = numbers.filter(|(_, path)| path.name.host == *port);
            of_port.map(|(number, _)| number).collect()
        };
        for number in of_port {
            layer.link(number, up);
        }
    }
}

impl Following {
    /// Asks the target for its portals; true where there are some that nobody knew.
    async fn discover(&mut self, core: &CoreHandle) -> bool {
        let prepared = &mut self.prepared;
        let Ok(given) = prepared.url.resolve() else {
            return false;
        };
        let addresses = prepared.facts.hosts.iter().flat_map(|it| &it.addresses);
        let from: Vec<IpAddr> = if self.from.is_empty() {
            Vec::new()
        } else {
            addresses.map(|at| at.ip).collect()
        };
        let mut login = prepared.login.clone();
        login.target_name = None;
        let ask = Ask {
            url: &prepared.url,
            given: &given,
            from: &from,
            login: &login,
        };
        let Ok(found) = portals(core, &ask, true).await else {
            return false;
        };
        let known = |address| prepared.portals.iter().any(|it| it.address == address);
        let new = found.portals.into_iter();
        let new: Vec<_> = new.filter(|it| !known(it.address)).collect();
        let some = !new.is_empty();
        prepared.portals.extend(new);
        some
    }

    /// Inspects all ports again: new pairs join, moved ones move, and the plan is notified.
    async fn renew(&mut self, core: &CoreHandle, home: &Home, layer: &Multipath) {
        let prepared = &mut self.prepared;
        // What `--from` named may be gone for the moment: then the facts stay, and the paths are
        // down.
        let hosts = host_ports(prepared.follower.machine(), &self.from);
        let known = hosts.and_then(|hosts| {
            facts(
                &prepared.initiator,
                hosts,
                &prepared.portals,
                &prepared.overrides,
            )
        });
        let Ok(known) = known else { return };
        prepared.facts = known;
        let plan = prepared.plan();
        let all = plan.paths.iter().filter_map(Candidate::of);
        let (old, new): (Vec<Candidate>, Vec<Candidate>) =
            all.partition(|it| home.paths.borrow().iter().any(|path| path.name == it.name));
        for it in old {
            self.moved(home, layer, &it);
        }
        self.join(core, home, layer, &new).await;
        if home.planned {
            layer.set_facts(self.prepared.facts.clone());
        }
    }

    fn moved(&self, home: &Home, layer: &Multipath, it: &Candidate) {
        let number = {
            let mut paths = home.paths.borrow_mut();
            let mut all = paths.iter_mut().enumerate();
            let path = all.find(|(_, path)| path.name == it.name && path.ends.from != it.from);
            let Some((number, path)) = path else { return };
            let interface = interface(self.prepared.follower.machine(), it.from);
            path.port.move_to(it.from, interface);
            path.ends.from = it.from;
            number
        };
        layer.link(number, true);
    }

    async fn join(&mut self, core: &CoreHandle, home: &Home, layer: &Multipath, new: &[Candidate]) {
        let isids = home.isids.borrow().clone();
        let Some(isids) = isids.filter(|_| !new.is_empty()) else {
            return;
        };
        let configs = match configs(&self.prepared, new, &isids, self.target).await {
            Ok(configs) => configs,
            Err(error) => {
                let what = format!("new paths cannot join: {}", error.cause);
                home.notices.borrow_mut().push(what);
                return;
            }
        };
        let (facts, joining) = (&self.prepared.facts, new.iter().zip(configs));
        let (paths, specs) = paths(core, facts, &mut self.numbers, joining, &home.unit);
        // In one go: the layer's paths and the list have the same numbers.
        home.paths.borrow_mut().extend(paths);
        for (name, spec) in specs {
            layer.add(name, spec);
        }
    }
}
