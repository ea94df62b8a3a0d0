// Which NICs, cards and networks a session goes through, as far as it is known. Pure.

import type { NodeNic, Portal, Session, Status } from '../api/types.ts';

/** An address without its port: a session comes from another port each time. */
export function address(from: string): string {
  const at = from.lastIndexOf(':');
  return at > 0 && (from.startsWith('[') || from.indexOf(':') === at) ? from.slice(0, at) : from;
}

/** The NIC that the host reported; of a host that reports none, each address is taken for one. */
export function nicName(session: Session): string {
  return session.nic?.name ?? address(session.from);
}

/** One machine. A host may have several, and each of them has its own paths, as the daemon counts them. */
export function machineKey(session: Session): string {
  return `${session.host}\n${session.initiator}`;
}

/** How machines are called: as their host, and as its initiators where these are several. */
export function machineNames(sessions: Session[]): (session: Session) => string {
  const first = new Map<string, string>();
  const several = new Set<string>();
  for (const { host, initiator } of sessions) if ((first.get(host) ?? initiator) !== initiator) several.add(host); else first.set(host, initiator);
  return ({ host, initiator }) => (several.has(host) ? `${initiator} of ${host}` : host);
}

/** Of its machine, apart from all of others. */
export function nicKey(session: Session): string {
  return `${session.host}\n${nicName(session)}\n${session.initiator}`;
}

export function hostCardKey(session: Session): string | undefined {
  return session.nic?.card === undefined ? undefined : `${session.host}\n${session.nic.card}\n${session.initiator}`;
}

/** As a part of a sentence: `10 Gb/s`. */
export function speed(bits: number | undefined): string | undefined {
  if (bits === undefined) return undefined;
  return bits >= 1e9 ? `${bits / 1e9} Gb/s` : `${bits / 1e6} Mb/s`;
}

/** What is known of the host's NIC, in words. */
export function nicSays(session: Session): string {
  const nic = session.nic;
  const from = address(session.from);
  if (!nic) return `${from}: its NIC is not reported by this host`;
  return [nic.name === from ? undefined : from, nic.card && `card ${nic.card}`, speed(nic.bits_per_second), nic.fabric && `fabric ${nic.fabric}`]
    .filter((part) => part).join(', ') || 'no hardware';
}

const plain = (ip: string) => ip.replace(/^\[|\]$/g, '');

/** The node's NIC that has a portal's address. */
export function nodeNic(status: Status, portal: string): NodeNic | undefined {
  const ip = plain(address(portal));
  return status.nics?.find((nic) => nic.addresses.some((one) => one.address === ip));
}

/** The interface of a portal: the one that it follows, or the one that has its address. */
export function portalNic(status: Status | undefined, portal: Portal): string | undefined {
  return portal.interface ?? (status && nodeNic(status, portal.address)?.name);
}

/** Two portals of one NIC are one port. */
export function portalKey(status: Status | undefined, portal: string): string {
  return (status && nodeNic(status, portal)?.name) ?? portal;
}

export interface Network {
  /** The name of a fabric, or a subnet. */
  name: string;
  /** What it is. */
  word: string;
  /** How it is known. */
  says: string;
  /** As a sentence calls it. */
  called: string;
}

/** Names that hosts of the same portal agree upon. */
function fabricOf(sessions: Session[], ofSubnet: (portal: string) => string | undefined, subnet: string): string | undefined {
  const names = new Set(sessions.filter((session) => session.nic?.fabric && ofSubnet(session.portal) === subnet).map((session) => session.nic?.fabric));
  return names.size === 1 ? [...names][0] : undefined;
}

/** Of each portal, what it is plugged into: the fabric that our initiators name, else its subnet. */
export function networks(status: Status, sessions: Session[]): Map<string, Network> {
  const subnets = new Map<string, string>();
  for (const portal of allPortals(status, sessions)) {
    const ip = plain(address(portal.address));
    const known = nodeNic(status, portal.address)?.addresses.find((one) => one.address === ip)?.network;
    const loopback = ip.startsWith('127.') || ip === '::1';
    const subnet = known ?? (loopback ? 'this machine' : undefined);
    if (subnet !== undefined) subnets.set(portal.address, subnet);
  }
  const found = new Map<string, Network>();
  const named = new Map([...new Set(subnets.values())].map((subnet) => [subnet, fabricOf(sessions, (portal) => subnets.get(portal), subnet)]));
  for (const [portal, subnet] of subnets) {
    const fabric = named.get(subnet);
    if (fabric) found.set(portal, { name: fabric, word: 'fabric', says: `${subnet}, named by its hosts`, called: `fabric ${fabric}` });
    else if (subnet === 'this machine') found.set(portal, { name: 'loopback', word: 'this machine', says: 'leads nowhere else', called: 'the loopback interface' });
    else found.set(portal, { name: subnet, word: 'subnet', says: 'its switches are not known', called: `network ${subnet}` });
  }
  return found;
}

/** Where the node listens, and where sessions came in: behind a wildcard there is more than one address. */
export function allPortals(status: Status, sessions: Session[]): Portal[] {
  const known = new Set(status.portals.map((portal) => portal.address));
  const wild = (at: string) => status.portals.find((portal) => ['0.0.0.0', '[::]'].includes(address(portal.address)) && portal.address.split(':').at(-1) === at.split(':').at(-1));
  const more = [...new Set(sessions.map((session) => session.portal))].filter((at) => !known.has(at));
  const heard = more.map((at): Portal => ({ group: wild(at)?.group ?? '', tag: wild(at)?.tag ?? 0, address: at }));
  return [...status.portals, ...heard];
}

/** What is said of a NIC of the node. */
export function nicWord(nic: NodeNic): string {
  return [speed(nic.bits_per_second) ?? 'speed not known', nic.links > 1 ? `${nic.links} links` : undefined, nic.carrier ? undefined : 'no carrier'].filter((part) => part).join(', ');
}
