// Every change that the page can make: the call of the API, and the command line that does the same. Pure.

import type { Method } from '../api/client.ts';
import type { Grant, Host, Target } from '../api/types.ts';

export interface Change {
  title: string;
  /** What the button says. */
  verb: string;
  method: Method;
  path: string;
  body?: unknown;
  /** The body as people may see it, where a secret is in it. */
  shown?: unknown;
  cli: string;
  /** A plan can be had before (`dry_run`). */
  plans: boolean;
  /** It takes something away: its name is typed before. */
  typed?: string;
  /** It is forced only where its plan is refused: what is refused since then is shown first. */
  asksFirst?: true;
  explain?: string;
  /** What brings back all that it took. */
  undo?: Change;
  /** Only a login of one's own can make it: a token has no password and no sessions. */
  own?: true;
}

export const seg = encodeURIComponent;

/** A word of a shell's command line. */
export function word(text: string): string {
  return /^[A-Za-z0-9_.:/@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

export function cli(...words: (string | false | undefined)[]): string {
  return ['causeway', ...words.filter((one): one is string => typeof one === 'string' && one !== '').map(word)].join(' ');
}

export interface ShareForm {
  name: string;
  size: string;
  hosts: string[];
  target: string;
  pool: string;
  blockSize: number;
  thin: boolean;
  integrity: boolean;
  /** Empty: as its pool has it. */
  cache?: string;
}

export const EVERY_INITIATOR = '*';
const ISCSI_NAME = /^(iqn\.\d{4}-\d{2}\.|eui\.|naa\.)/i;

/** The LUN, its target and its grants in one step: all of it or nothing. */
export function createShare(form: ShareForm, hosts: Host[], targets: Target[]): Change {
  const target = form.target || form.name;
  const made: { name: string; iqn: string[] }[] = [];
  const names = form.hosts.map((named) => hostOf(named, hosts, made));
  const lun: Record<string, unknown> = { name: form.name, size: form.size };
  if (form.pool) lun['pool'] = form.pool;
  if (form.blockSize !== 512) lun['block_size'] = form.blockSize;
  if (!form.thin) lun['thin'] = false;
  if (form.integrity) lun['integrity'] = true;
  if (form.cache) lun['cache'] = form.cache;
  const body: Record<string, unknown> = { lun: [lun] };
  if (!targets.some((known) => known.name === target)) body['target'] = [{ name: target }];
  if (made.length) body['host'] = made;
  if (names.length) body['grant'] = names.map((host) => ({ host, lun: form.name, target }));
  const options = [
    '--size', form.size,
    ...(form.pool ? ['--pool', form.pool] : []),
    ...(form.blockSize === 512 ? [] : ['--block-size', String(form.blockSize)]),
    ...(form.thin ? [] : ['--thin', 'false']),
    ...(form.integrity ? ['--integrity', 'true'] : []),
    ...(form.cache ? ['--cache', form.cache] : []),
  ];
  return {
    title: 'Create a share',
    verb: 'Create',
    method: 'POST',
    path: 'objects',
    body,
    cli: names.length
      ? cli('share', 'create', form.name || 'NAME', ...options, ...(form.target ? ['--target', form.target] : []), '--for', form.hosts.join(','))
      : cli('lun', 'create', form.name || 'NAME', ...options),
    plans: true,
    explain: 'Makes the LUN, a target where there is none of this name, and the grants: all of it or nothing.',
  };
}

/** The host that is named: by its name, or by an initiator's, for which one is made where there is none. */
function hostOf(named: string, hosts: Host[], made: { name: string; iqn: string[] }[]): string {
  if (named !== EVERY_INITIATOR && !ISCSI_NAME.test(named)) return named;
  const iqn = named.toLowerCase();
  const owner = [...hosts, ...made].find((host) => host.iqn.includes(iqn));
  if (owner) return owner.name;
  const tail = iqn === EVERY_INITIATOR ? 'everyone' : (iqn.split(/[:.]/).at(-1) ?? iqn);
  const base = tail.replaceAll(/[^a-z0-9-]/g, '').replace(/^-+/, '').slice(0, 40) || 'host';
  let name = base;
  for (let n = 2; [...hosts, ...made].some((host) => host.name === name); n++) name = `${base}-${n}`;
  made.push({ name, iqn: [iqn] });
  return name;
}

export function allow(initiator: string, host: string, luns: string[], target: string, hosts: Host[]): Change {
  const made: { name: string; iqn: string[] }[] = [];
  const name = host || hostOf(initiator, hosts, made);
  return {
    title: 'Allow an initiator',
    verb: 'Allow',
    method: 'POST',
    path: 'objects',
    body: { ...(made.length ? { host: made } : {}), grant: luns.map((lun) => ({ host: name, lun, target })) },
    cli: (luns.length ? luns : ['LUN']).map((lun) => cli('grant', 'create', host || initiator, lun, ...(target ? ['--target', target] : []))).join(' && '),
    plans: true,
    explain: `The initiator may use ${luns.length > 1 ? 'these LUNs' : 'this LUN'} from its next login on.`,
  };
}

export function grant(host: string, lun: string, target: string, readOnly: boolean): Change {
  return {
    title: `Grant LUN ${lun}`,
    verb: 'Grant',
    method: 'POST',
    path: 'grants',
    body: { host, lun, target, ...(readOnly ? { read_only: true } : {}) },
    cli: cli('grant', 'create', host || 'HOST', lun, ...(target ? ['--target', target] : []), readOnly && '--read-only'),
    plans: true,
    explain: 'Hosts that are logged in learn of it at once.',
  };
}

export function revoke(one: Grant): Change {
  return {
    title: `Take LUN ${one.lun} away from host ${one.host}`,
    verb: 'Take away',
    method: 'DELETE',
    path: `grants/${seg(one.name)}`,
    cli: cli('grant', 'delete', one.name),
    plans: true,
    typed: one.host,
    explain: 'What the host has in flight on this LUN fails.',
    undo: grantAgain(one),
  };
}

/** As it was, with its number: for the host it is the same LUN. */
function grantAgain({ host, lun, target, lun_id, read_only }: Grant): Change {
  return {
    title: `Grant LUN ${lun} to host ${host} again`,
    verb: 'Grant',
    method: 'POST',
    path: 'grants',
    body: { host, lun, target, lun_id, ...(read_only ? { read_only } : {}) },
    cli: cli('grant', 'create', host, lun, '--target', target, '--lun-id', String(lun_id), read_only && '--read-only'),
    plans: true,
  };
}

export function createHost(name: string, initiators: string[]): Change {
  return {
    title: 'Add a host',
    verb: 'Add',
    method: 'POST',
    path: 'hosts',
    body: { name, iqn: initiators },
    cli: cli('host', 'create', name || 'NAME', ...initiators.flatMap((iqn) => ['--iqn', iqn])),
    plans: true,
    explain: 'A host is a name for one or more initiators. It may use what it is granted.',
  };
}

export function removeHost(name: string): Change {
  return {
    title: `Delete host ${name}`,
    verb: 'Delete',
    method: 'DELETE',
    path: `hosts/${seg(name)}`,
    cli: cli('host', 'delete', name),
    plans: true,
    typed: name,
    explain: 'Its sessions end, and its grants go with it.',
  };
}

export function resize(lun: string, size: string): Change {
  return {
    title: `Grow LUN ${lun}`,
    verb: 'Set size',
    method: 'POST',
    path: `luns/${seg(lun)}/resize`,
    body: { size },
    cli: cli('lun', 'resize', lun, '--size', size || 'SIZE'),
    plans: true,
    explain: 'Hosts learn of the new size at once. Grow their partition or file system afterwards.',
  };
}

export function rename(kind: 'lun' | 'host' | 'target', name: string, newName: string, undone = false): Change {
  return {
    title: `Rename ${kind === 'lun' ? 'LUN' : kind} ${name}`,
    verb: 'Rename',
    method: 'POST',
    path: `${kind}s/${seg(name)}/rename`,
    body: { to: newName },
    cli: cli(kind, 'rename', name, newName || 'NAME'),
    plans: true,
    explain: kind === 'lun' ? 'Hosts see no difference: number, serial and identifier stay.' : 'Nothing else changes.',
    ...(undone ? {} : { undo: rename(kind, newName, name, true) }),
  };
}

/** Fields of a LUN; `null` is taken away. */
export function setLun(lun: string, fields: Record<string, unknown>): Change {
  return set('lun', lun, `Settings of LUN ${lun}`, fields);
}

/** Some fields of an object anew. */
export function set(kind: 'lun' | 'host' | 'target' | 'grant', name: string, title: string, fields: Record<string, unknown>): Change {
  const pairs = Object.entries(fields).flatMap(([key, value]) => pair(key, value));
  return {
    title,
    verb: 'Set',
    method: 'PATCH',
    path: `${kind}s/${seg(name)}`,
    body: fields,
    cli: cli(kind, 'set', name, ...(pairs.length ? pairs : ['KEY=VALUE'])),
    plans: true,
  };
}

function pair(key: string, value: unknown): string[] {
  if (value === null) return [`${key}=none`];
  if (Array.isArray(value)) return [`${key}=${value.join(',')}`];
  if (typeof value !== 'object') return [`${key}=${String(value)}`];
  return Object.entries(value as object).map(([part, one]) => `${key}.${part}=${one === null ? 'none' : String(one)}`);
}

export function removeLun(name: string): Change {
  return {
    title: `Delete LUN ${name}`,
    verb: 'Delete',
    method: 'DELETE',
    path: `luns/${seg(name)}`,
    cli: cli('lun', 'delete', name),
    plans: true,
    typed: name,
    explain: 'Hosts lose it at once. Its data and its grants are kept: restore brings both back.',
    undo: restoreLun(name),
  };
}

export function restoreLun(name: string): Change {
  return {
    title: `Restore LUN ${name}`,
    verb: 'Restore',
    method: 'POST',
    path: `luns/${seg(name)}/restore`,
    cli: cli('lun', 'restore', name),
    plans: true,
    explain: 'Its data, its number and its grants come back.',
  };
}

export function purgeLun(name: string): Change {
  return {
    title: `Destroy the data of LUN ${name}`,
    verb: 'Destroy',
    method: 'POST',
    path: `luns/${seg(name)}/purge`,
    cli: cli('lun', 'purge', name),
    plans: true,
    typed: name,
    explain: 'This cannot be undone.',
  };
}

export function dropSession(id: number, host: string): Change {
  return {
    title: `End session ${id} of host ${host}`,
    verb: 'End it',
    method: 'DELETE',
    path: `sessions/${id}`,
    cli: cli('session', 'drop', String(id)),
    plans: true,
    typed: host,
    asksFirst: true,
    explain: 'Its initiator logs in again by itself. A host without another path waits until it has: that is refused but for whoever types its name.',
  };
}

export function scrub(lun: string, operation: 'start' | 'stop'): Change {
  return {
    title: `${operation === 'start' ? 'Scrub' : 'Stop the scrub of'} LUN ${lun}`,
    verb: operation === 'start' ? 'Start' : 'Stop',
    method: 'POST',
    path: `luns/${seg(lun)}/scrub`,
    body: { operation },
    cli: cli('scrub', operation, lun),
    plans: false,
    explain: operation === 'start' ? 'All of it is read and compared. It gives way to hosts.' : 'How far it is, is kept.',
  };
}

export function reopenJournal(pool: string): Change {
  return {
    title: `Open the journal of pool ${pool} again`,
    verb: 'Open',
    method: 'POST',
    path: `pools/${seg(pool)}/journal`,
    body: { operation: 'reopen' },
    cli: cli('journal', 'reopen', pool),
    plans: false,
    explain: 'For when its device is there again. Its LUNs serve then.',
  };
}

/** What somebody types before it is done; a plan that is refused, or a refusal, asks for it too. */
export function confirmation(change: Change, refusal?: string, confirm?: string): string | undefined {
  if (change.typed !== undefined) return change.typed;
  return refusal || confirm ? (confirm ?? decodeURIComponent(change.path.split('/')[1] ?? '')) : undefined;
}

/** It says that it is meant: what has a plan is refused without where that hits somebody. Some say so only where the plan is. */
export const isForced = (change: Change, confirm: string | undefined, refusal?: string) =>
  change.plans && confirm !== undefined && (!change.asksFirst || refusal !== undefined);

/** The command line that does the same as a page on which the name was typed. */
export const shownLine = (change: Change, forced: boolean) => (forced ? `${change.cli} --yes` : change.cli);

/** As a shell makes the call. */
export function curl(change: Change, origin: string, forced = false): string {
  const proof = change.own ? ['-b "causeway-session=$COOKIE"', '-H "X-Causeway-CSRF: $CSRF"'] : ['-H "Authorization: Bearer $TOKEN"'];
  const parts = [`curl -X ${change.method} ${word(`${origin}/api/v1/${change.path}${forced ? '?force=true' : ''}`)}`, ...proof];
  const body = change.shown ?? change.body;
  if (body !== undefined) parts.push("-H 'Content-Type: application/json'", `-d ${word(JSON.stringify(body))}`);
  return parts.join(' \\\n  ');
}
