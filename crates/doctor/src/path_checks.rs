//! Checks of paths: how many there are, what they share, and which routes they take.

use crate::finding::{Finding, Verdict};
use crate::scene::Scene;
use paths::{PathName, Subnet, TargetPort};
use std::collections::{BTreeMap, BTreeSet};

pub(crate) fn all(scene: &Scene) -> Vec<Finding> {
    let mut found = vec![
        second_path(scene),
        portals(scene),
        routers(scene),
        reached(scene),
    ];
    found.extend(target(scene));
    found.extend(cards(scene));
    found.extend(controllers(scene));
    found.extend(mesh(scene));
    found
}

fn target(scene: &Scene) -> Option<Finding> {
    let (cause, remedy) = scene.target_error.as_ref()?;
    let found = Finding::new("target", &[], Verdict::Problem, cause.clone());
    Some(
        found
            .because("without it no path can be checked")
            .remedy(remedy.clone()),
    )
}

fn second_path(scene: &Scene) -> Finding {
    let linked = scene.ports.iter().filter(|port| port.link).count();
    let portals: BTreeSet<_> = scene.routes.iter().map(|probe| probe.portal).collect();
    let missing = if linked < 2 {
        Some(format!("{linked} storage port with a link"))
    } else if portals.len() == 1 {
        Some("the target has one portal".to_owned())
    } else {
        None
    };
    match missing {
        None => Finding::good("second-path", &[5], format!("{linked} storage ports have a link")),
        Some(what) => Finding::new("second-path", &[5], Verdict::Problem, what)
            .because("one cable, NIC, switch or port takes the storage away")
            .remedy("two ports on two cards, through two switches, to two ports of the target: 1:1 pairs"),
    }
}

/// Several portals in one network.
fn portals(scene: &Scene) -> Finding {
    if scene.routes.is_empty() {
        return Finding::new(
            "portal-subnets",
            &[3],
            Verdict::NotCheckable,
            "no target was named".to_owned(),
        )
        .remedy("run `causeway doctor URL`");
    }
    let mut by: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for probe in &scene.routes {
        let ports = scene.ports.iter().flat_map(|port| &port.addresses);
        let near = ports
            .map(|at| Subnet::of(at.ip, at.prefix))
            .find(|net| net.contains(probe.portal.ip()));
        if let Some(net) = near {
            by.entry(net.to_string())
                .or_default()
                .insert(probe.portal.to_string());
        }
    }
    match by.iter().find(|(_, portals)| portals.len() > 1) {
        None => Finding::good(
            "portal-subnets",
            &[3],
            "each portal has a network of its own",
        ),
        Some((net, portals)) => {
            let all: Vec<&str> = portals.iter().map(String::as_str).collect();
            Finding::new("portal-subnets", &[3], Verdict::Advice, format!("{} stand in one network, {net}", all.join(", ")))
                .because("every port reaches every portal; without a planner all pairs become active and collide")
                .remedy("one network for each port of the target, unless its maker asks for one")
        }
    }
}

fn routers(scene: &Scene) -> Finding {
    if scene.routes.is_empty() {
        return Finding::new(
            "routers",
            &[7],
            Verdict::NotCheckable,
            "no target was named".to_owned(),
        )
        .remedy("run `causeway doctor URL`");
    }
    let routed: BTreeSet<String> = scene
        .routes
        .iter()
        .filter_map(|probe| {
            let gateway = probe.route.as_ref()?.gateway?;
            Some(format!("{} by {gateway}", probe.portal))
        })
        .collect();
    if routed.is_empty() {
        return Finding::good("routers", &[7], "no router stands between host and target");
    }
    let all: Vec<&str> = routed.iter().map(String::as_str).collect();
    Finding::new("routers", &[7], Verdict::Problem, all.join(", "))
        .because("a router adds latency, drops bursts, and usually has smaller frames")
        .remedy(
            "give the host an address in the portal's network, on a NIC that is plugged into it",
        )
}

/// Packets leave by the port that they should.
fn reached(scene: &Scene) -> Finding {
    let wrong: Vec<String> = scene
        .routes
        .iter()
        .filter_map(|probe| {
            let by = &probe.route.as_ref()?.interface;
            (*by != probe.port && !is_on(scene, by, &probe.port)).then(|| {
                format!(
                    "{} from {} ({}) leaves by {by}",
                    probe.portal, probe.from, probe.port
                )
            })
        })
        .collect();
    if scene.routes.is_empty() {
        return Finding::new(
            "source-routes",
            &[10],
            Verdict::NotCheckable,
            "no target was named".to_owned(),
        )
        .remedy("run `causeway doctor URL`");
    }
    if wrong.is_empty() {
        return Finding::good(
            "source-routes",
            &[10],
            "packets leave by the port whose address they carry",
        );
    }
    Finding::new("source-routes", &[10], Verdict::Problem, wrong.join("; "))
        .because("paths that look like several use one NIC, and one cable takes them all")
        .remedy("a routing table and rule for each address: `ip rule add from ADDRESS table N`; or networks of their own")
}

/// Whether `upper` is a VLAN, bridge or the like on the port.
fn is_on(scene: &Scene, upper: &str, port: &str) -> bool {
    let mut at = upper.to_owned();
    for _ in 0..8 {
        let Some(nic) = scene.machine.nic(&at) else {
            return false;
        };
        if nic.lower.iter().any(|it| it == port) {
            return true;
        }
        match nic.lower.first() {
            Some(next) => at.clone_from(next),
            None => return false,
        }
    }
    false
}

/// Active paths, or all ports without a plan, on different cards.
fn cards(scene: &Scene) -> Vec<Finding> {
    let active = active(scene);
    let used: BTreeSet<&str> = match &active {
        Some(active) => active.iter().map(|path| path.host.as_str()).collect(),
        None => scene.ports.iter().map(|port| port.name.as_str()).collect(),
    };
    let ports: Vec<_> = match &scene.plan {
        Some((facts, _)) => facts.hosts.iter().collect(),
        None => scene.ports.iter().collect(),
    };
    let used: Vec<_> = ports
        .into_iter()
        .filter(|port| used.contains(port.name.as_str()))
        .collect();
    let cards: BTreeSet<&str> = used.iter().map(|port| port.card.as_str()).collect();
    let what = if active.is_some() {
        "active paths"
    } else {
        "storage ports"
    };
    if used.len() < 2 {
        return Vec::new();
    }
    let finding = if cards.len() == used.len() {
        Finding::good("cards", &[], format!("{what} sit on {} cards", cards.len()))
    } else if cards.len() == 1 {
        let card = cards.first().copied().unwrap_or_default();
        Finding::new(
            "cards",
            &[],
            Verdict::Problem,
            format!("all {what} sit on one card, {card}"),
        )
        .because("a card fails with all its ports")
        .remedy("use ports of different cards: plug one cable over, or name others with --from")
    } else {
        Finding::new("cards", &[], Verdict::Advice, format!("{} {what} sit on {} cards", used.len(), cards.len()))
            .because("a card fails with all its ports; what is left must carry the load")
            .remedy("spread them evenly; `causeway path plan --what-if host-card:NAME URL` shows what is left")
    };
    vec![finding]
}

/// Active paths on different controllers of the target and cards of them, as far as anybody
/// reported.
fn controllers(scene: &Scene) -> Option<Finding> {
    let (facts, plan) = scene.plan.as_ref()?;
    let active = plan.active();
    let element = |port: &TargetPort| {
        let controller = port.controller.clone();
        let controller = controller.unwrap_or_else(|| format!("group {}", port.portal_group));
        (controller, port.card.clone())
    };
    let of = |ports: &mut dyn Iterator<Item = &TargetPort>| {
        let all: BTreeSet<(String, Option<String>)> = ports.map(element).collect();
        let controllers: BTreeSet<String> = all.iter().map(|it| it.0.clone()).collect();
        (controllers.len(), all.len())
    };
    let reached = |port: &&TargetPort| {
        let mut paths = plan.paths.iter();
        paths.any(|path| path.portal.is_some() && path.path.target == port.name)
    };
    let used = |port: &&TargetPort| active.iter().any(|path| path.target == port.name);
    let (controllers, cards) = of(&mut facts.targets.iter().filter(reached));
    let (on_controllers, on_cards) = of(&mut facts.targets.iter().filter(used));
    if active.len() < 2 {
        return None;
    }
    let what = format!(
        "active paths end at {on_controllers} of {controllers} controllers and {on_cards} of {cards} cards that are known"
    );
    let more = on_controllers < controllers.min(active.len()) || on_cards < cards.min(active.len());
    Some(if more {
        Finding::new("controllers", &[], Verdict::Advice, what)
            .because("a controller or card of the target takes all of its paths along when it fails")
            .remedy("`causeway path plan URL` says why: speed and access state go first; a facts file can correct what was reported")
    } else {
        Finding::good("controllers", &[], what)
    })
}

fn active(scene: &Scene) -> Option<Vec<PathName>> {
    let (_, plan) = scene.plan.as_ref()?;
    Some(plan.active())
}

/// Active paths that cross, and surplus ones.
fn mesh(scene: &Scene) -> Vec<Finding> {
    let Some((facts, plan)) = &scene.plan else {
        let reported = Finding::new(
            "mesh",
            &[5, 6],
            Verdict::NotCheckable,
            "no target was named".to_owned(),
        );
        return vec![
            reported.remedy(
                "run `causeway doctor URL`: it plans the paths and looks for crossing ones",
            ),
        ];
    };
    let active = plan.active();
    let pairs = plan
        .paths
        .iter()
        .filter(|path| path.portal.is_some())
        .count();
    let count = |of: &dyn Fn(&PathName) -> &String, name: &String| {
        active.iter().filter(|path| of(path) == name).count()
    };
    let crossing: Vec<String> = active
        .iter()
        .filter(|path| {
            let (host, target) = (
                speed_of_host(scene, &path.host),
                speed_of_target(facts, &path.target),
            );
            // A port that is faster than its partners may have several.
            count(&|it| &it.host, &path.host) > 1 && host <= target
                || count(&|it| &it.target, &path.target) > 1 && target <= host
        })
        .map(ToString::to_string)
        .collect();
    let mut found = Vec::new();
    found.push(if crossing.is_empty() {
        Finding::good("mesh", &[5, 6], format!("{} active of {pairs} paths, none of them cross", active.len()))
    } else {
        Finding::new("mesh", &[5, 6], Verdict::Problem, format!("active paths cross: {}", crossing.join(", ")))
            .because("two senders that fill one port overflow the switch's buffer; throughput falls by up to 96 %")
            .remedy("let the planner choose (no --no-plan), with surplus paths as standby")
    });
    if pairs > active.len() {
        found.push(Finding::new(
            "standby-paths",
            &[6],
            Verdict::Good,
            format!("{} surplus paths wait as standby", pairs - active.len()),
        ));
    }
    found
}

fn speed_of_host(scene: &Scene, name: &str) -> u64 {
    let facts = scene.plan.as_ref().map(|it| &it.0);
    let port = facts.and_then(|facts| facts.hosts.iter().find(|port| port.name == name));
    port.and_then(|port| port.speed).map_or(0, |speed| speed.0)
}

fn speed_of_target(facts: &paths::Facts, name: &str) -> u64 {
    let port = facts.targets.iter().find(|port| port.name == name);
    port.and_then(|port| port.speed).map_or(0, |speed| speed.0)
}
