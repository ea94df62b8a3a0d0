// Changes of the node's settings, and the restart that brings them into force. Pure.

import { cli, type Change } from './changes.ts';
import { plural } from './format.ts';

/** What the API takes of each is the same; the words differ. */
export function setConfig(title: string, body: Record<string, unknown>, ...words: string[]): Change {
  return { title, verb: 'Apply', method: 'PATCH', path: 'config', body, cli: cli('config', ...words), plans: false };
}

export const setNodeName = (name: string) => setConfig('The name of this node', { node_name: name }, 'set', '--name', name);

export const setScrubDays = (days: number) => setConfig('The schedule of scrubs', { scrub_every_days: days }, 'set', '--scrub-every', String(days));

export function setPortals(group: string, listen: string[]): Change {
  return setConfig(`Portals of group ${group}`, { portals: { group, listen } }, 'set', '--portals', listen.join(','), '--portal-group', group);
}

export interface PoolForm {
  name: string;
  path: string;
  journal: string;
  size: string;
}

export function addPool({ name, path, journal, size }: PoolForm): Change {
  const body: Record<string, string> = { name, path };
  if (journal) body['journal'] = journal;
  if (journal && size) body['journal_size'] = size;
  const options = journal ? ['--journal', journal, ...(size ? ['--journal-size', size] : [])] : [];
  return setConfig(`Pool ${name}`, { add_pool: body }, 'add-pool', name, '--path', path, ...options);
}

export function restartNode(node: string, sessions: number): Change {
  return {
    title: 'Restart the daemon',
    verb: 'Restart',
    method: 'POST',
    path: 'restart',
    cli: cli('config', 'restart'),
    plans: false,
    ...(sessions ? { typed: node } : {}),
    explain: `It ends in order and begins anew, which takes some seconds. ${sessions ? `It ends ${plural(sessions, 'session')}: what these hosts have in flight waits until they have logged in again, as they do by themselves.` : 'No host is logged in.'} You log in here again.`,
  };
}

/** An address or interface with the port that the others have, where it is not the usual one. */
export function withPort(where: string, port: number, usual: number): string {
  if (port === usual || /^(\[.*\]|[^:]*):\d+$/.test(where)) return where;
  return where.includes(':') && !where.startsWith('[') ? `[${where}]:${port}` : `${where}:${port}`;
}

/** The words of `listen` as node.toml has it. */
export function listenWords(toml: string): string[] {
  return [...toml.matchAll(/(ip|iface) = "([^"]+)"(?:, port = (\d+))?/g)].map(([, kind, where = '', port]) => {
    if (!port) return where;
    return kind === 'ip' && where.includes(':') ? `[${where}]:${port}` : `${where}:${port}`;
  });
}
