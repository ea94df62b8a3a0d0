//! Each thing that can break in a cluster, as steps with bars.

/// Something that breaks, under a load.
pub(super) struct Drill {
    /// By what it is asked for.
    pub(super) name: &'static str,
    /// What breaks, for people.
    pub(super) title: &'static str,
    /// Lines as a list has them, from the first moment on.
    pub(super) steps: &'static str,
}

const fn drill(name: &'static str, title: &'static str, steps: &'static str) -> Drill {
    Drill { name, title, steps }
}

/// All of them. Bars are those of the table of failures; where nobody may serve, what it lasts is
/// added to them.
pub(super) const DRILLS: &[Drill] = &[
    drill(
        "owner-dies",
        "the node that serves is killed",
        "0 kill owner within 5\n6 start all",
    ),
    drill(
        "owner-hangs",
        "the node that serves is halted, and goes on later",
        "0 pause owner within 5\n7 resume a\n7 resume b",
    ),
    drill(
        "owner-restarts",
        "the node that serves is killed, and starts again after a second",
        "0 kill owner within 4\n1 start all",
    ),
    drill(
        "turns",
        "the nodes are killed in turn, each as soon as the other one is back",
        "0 kill owner within 5\n3.7 start all\n4.6 kill owner within 5\n8.4 start all\n9.3 kill owner within 5\n13 start all",
    ),
    drill(
        "other-dies",
        "the node that does not serve is killed",
        "0 kill other within 2.5\n4 start all",
    ),
    drill(
        "other-hangs",
        "the node that does not serve is halted",
        "0 pause other within 2.5\n5 resume a\n5 resume b",
    ),
    drill(
        "link",
        "the link between the nodes is a black hole",
        "0 hole link within 2.5\n5 mend all",
    ),
    drill(
        "link-out",
        "what the owner sends over the link is lost, and what it is sent arrives",
        "0 mute owner.link within 2.5\n5 mend all",
    ),
    drill(
        "link-in",
        "what the owner is sent over the link is lost, and what it sends arrives",
        "0 deaf owner.link within 2.5\n5 mend all",
    ),
    drill(
        "link-owner-etcd",
        "the link is a black hole, and only the owner reaches etcd",
        "0 hole link within 2.5\n0 hole other.etcd within 2.5\n5 mend all",
    ),
    drill(
        "link-other-etcd",
        "the link is a black hole, and only the other node reaches etcd",
        "0 hole owner.etcd within 5\n0 hole link within 5\n7 mend all",
    ),
    drill(
        "link-nobody",
        "the link is a black hole, and no node reaches etcd, for 5 s; then etcd elects",
        "0 hole a.etcd within 12\n0 hole b.etcd within 12\n0 hole link within 12\n5 mend all",
    ),
    drill(
        "link-short",
        "the same, and the link is back after a second, before etcd is",
        "0 hole a.etcd within 3\n0 hole b.etcd within 3\n0 hole link within 3\n1 mend link\n5 mend all",
    ),
    drill(
        "etcd-dies",
        "all members of etcd are killed",
        "0 kill etcd-all within 0.2\n4 start all",
    ),
    drill(
        "etcd-leader",
        "the leader of etcd is killed",
        "0 kill etcd-leader within 0.2\n3 start all",
    ),
    drill(
        "etcd-hangs",
        "the leader of etcd is halted while the owner dies",
        "0 pause etcd-leader within 0.2\n1 kill owner within 8\n8 resume etcd-1\n8 resume etcd-2\n8 resume etcd-3\n8 start all",
    ),
    drill(
        "etcd-other",
        "etcd is lost, then the node that does not serve, for 5 s",
        "0 kill etcd-all within 0.2\n1 kill other within 10\n6 start etcd-all\n9 start all",
    ),
    drill(
        "etcd-owner",
        "etcd is lost, then the node that serves, for 5 s",
        "0 kill etcd-all within 0.2\n1 kill owner within 10\n6 start etcd-all\n10 start all",
    ),
    drill(
        "other-slow",
        "the link of the node that does not serve carries 10 Mb/s",
        "0 slow other.link within 3\n5 mend all",
    ),
    drill(
        "handover",
        "the owner is drained",
        "0 drain owner within 1\n3 drain owner within 1",
    ),
    drill(
        "owner-stops",
        "the node that serves is stopped in order",
        "0 stop owner within 1\n4 start all",
    ),
    drill(
        "power",
        "both nodes are killed, and start again after 2 s",
        "0 kill both within 8\n2 start all",
    ),
    drill(
        "cable",
        "the cable of one NIC of the host is pulled",
        "0 cut host.eth0 within 0.2\n3 mend all",
    ),
    drill(
        "node-cable",
        "a cable of the node that serves is pulled, of which the host is not notified",
        "0 cut owner.p0 within 3\n5 mend all",
    ),
    drill(
        "black-hole",
        "a switch silently forwards nothing for one NIC of the host",
        "0 hole host.eth0 within 3\n5 mend all",
    ),
    drill(
        "owner-ports",
        "both ports of the node that serves are black holes for hosts",
        "0 hole owner.p0 within 3\n0 hole owner.p1 within 3\n6 mend all",
    ),
    drill(
        "forwarded-link",
        "hosts reach the owner through the other node alone, then the link of both is lost for 3 s",
        "0 hole owner.p0 within 3\n0 hole owner.p1 within 3\n5 hole link within 6\n8 mend link\n13 mend all",
    ),
    drill(
        "forwarded-dies",
        "hosts reach the owner through the other node alone, and it is killed",
        "0 hole owner.p0 within 3\n0 hole owner.p1 within 3\n5 kill owner within 6\n11 start all\n12 mend all",
    ),
];
