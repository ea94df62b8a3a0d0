// Changes of the node's settings, and the restart that brings them into force. Pure.

import type { ConfigView, HostHit, SettingChange } from '../api/types.ts';
import { cli, type Change } from './changes.ts';
import type { Difference } from './conflict.ts';
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

/** A setting by its key; an empty text is what node.toml says. */
export function setValue(key: string, text: string): Change {
  return setConfig(`The setting ${key}`, { values: { [key]: valueOf(text.trim()) } }, 'set', `${key}=${text.trim()}`);
}

/** As the command line understands it. */
function valueOf(text: string): string | number | boolean | null {
  if (text === '') return null;
  if (text === 'true' || text === 'false') return text === 'true';
  return /^\d+$/.test(text) ? Number(text) : text;
}

/** A value as a section of node.toml. */
export function valueToml(key: string, text: string): string {
  const [section = '', name = ''] = key.split('.');
  const value = valueOf(text.trim());
  return `[${section}]\n${name} = ${typeof value === 'string' ? JSON.stringify(value) : String(value ?? '')}`;
}

/** When changes come into force, in a sentence. */
export function comesIntoForce(changes: SettingChange[]): string {
  const later = changes.filter((one) => one.takes_effect === 'restart').length;
  if (!later) return 'It is in effect at once, and ends no session.';
  if (later === changes.length) return 'It is kept now, and comes into force with a restart of the daemon.';
  return 'The rest is kept now, and comes into force with a restart of the daemon.';
}

/** What two admins changed: of each key that one of them did, as it was, as it is, and as I want it. */
export function settingsChanged(before: ConfigView, theirs: ConfigView, mine: SettingChange[]): Difference[] {
  const said = (view: ConfigView, key: string) => {
    const waits = view.changes.find((one) => one.key === key);
    return (waits ? waits.in_file : view.settings.find((one) => one.key === key)?.value) ?? 'nothing';
  };
  const keys = new Set([before, theirs].flatMap((view) => [...view.settings, ...view.changes].map((one) => one.key)));
  return [...keys].map((field) => {
    const wanted = mine.find((one) => one.key === field);
    return { field, before: said(before, field), theirs: said(theirs, field), mine: wanted ? (wanted.in_file ?? 'nothing') : '' };
  }).filter((one) => one.before !== one.theirs || one.mine !== '');
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

/** Nothing on disk is deleted, and it is refused while a LUN lies in it. */
export function removePool(name: string): Change {
  return {
    ...setConfig(`Remove pool ${name}`, { remove_pool: name }, 'remove-pool', name),
    verb: 'Remove',
    method: 'PATCH',
    typed: name,
    explain: `The node does without pool ${name} from the next restart of the daemon on. What is in its place stays there: nothing is deleted.`,
  };
}

const NAMED_MAX = 5;

/** Whom a restart hits, a line for each host. */
export function hitSaid({ host, sessions, luns }: HostHit): string {
  const ids = sessions.map((one) => one.id).join(', ');
  const more = luns.length > NAMED_MAX ? ` and ${luns.length - NAMED_MAX} more` : '';
  const reached = luns.length ? `${luns.length === 1 ? 'LUN' : 'LUNs'} ${luns.slice(0, NAMED_MAX).join(', ')}${more}` : 'no LUN';
  return `${host}: ${sessions.length === 1 ? 'session' : 'sessions'} ${ids}, ${reached}`;
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

/** After a restart: how long it was waited for, and what is in effect since then. */
export function backSaid(seconds: number, waited: SettingChange[]): string {
  const back = `The daemon is back after ${Math.max(1, Math.round(seconds))} s:`;
  if (!waited.length) return `${back} all settings are in effect.`;
  const named = waited.slice(0, NAMED_MAX).map(({ key, in_file: value }) => `${key}: ${value ?? 'nothing'}`);
  return `${back} what waited for it is now in effect: ${named.join(', ')}${waited.length > NAMED_MAX ? ` and ${waited.length - NAMED_MAX} more` : ''}.`;
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
