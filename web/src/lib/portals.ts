// Portal groups, and what node.toml says to have another portal. Pure.

import type { Portal } from '../api/types.ts';

export interface Group {
  name: string;
  tag: number;
  portals: Portal[];
}

export function groupsOf(portals: Portal[]): Group[] {
  const groups = new Map<string, Group>();
  for (const portal of portals) {
    const group = groups.get(portal.group) ?? { name: portal.group, tag: portal.tag, portals: [] };
    group.portals.push(portal);
    groups.set(portal.group, group);
  }
  return [...groups.values()];
}

/** Whether only programs of this machine reach an address. */
export function isLoopback(address: string): boolean {
  return /^(127\.|\[::1\])/.test(address);
}

function quoted(text: string): string {
  return JSON.stringify(text);
}

/** A word of TOML for an address as people type it: of an interface, or an IP. */
function listener(where: string, port: number): string {
  const ip = /^[\d.]+$/.test(where) || where.includes(':');
  return `{ ${ip ? 'ip' : 'iface'} = ${quoted(where)}, port = ${port} }`;
}

/** The section of a group with these addresses, as it stands in node.toml. */
export function portalGroupToml(name: string, tag: number, addresses: string[], port: number): string {
  const lines = addresses.map((where) => `  ${listener(where, port)},`);
  return ['[[portal_group]]', `name = ${quoted(name)}`, `tag = ${tag}`, 'listen = [', ...lines, ']'].join('\n');
}

/** The section of a pool. */
export function poolToml(name: string, path: string, journal: string, journalSize: string): string {
  const lines = ['[[pool]]', `name = ${quoted(name)}`, `path = ${quoted(path)}`];
  if (journal) lines.push(`journal = ${quoted(journal)}`);
  if (journal && journalSize) lines.push(`journal_size = ${quoted(journalSize)}`);
  return lines.join('\n');
}

/** The name of the node. */
export function nodeToml(name: string): string {
  return ['[node]', `name = ${quoted(name)}`].join('\n');
}
