// Changes of targets, hosts, grants and journals, beside those of `changes.ts`. Pure.

import { cli, seg, set, type Change } from './changes.ts';

export interface ChapForm {
  /** Empty: its name is believed. */
  user: string;
  /** Empty: the one that the daemon has. */
  secret: string;
  mutualUser: string;
  mutualSecret: string;
}

/** What of a host's CHAP is sent; `undefined`: it stays. */
export function chapOf(form: ChapForm, before: ChapForm): Record<string, unknown> | null | undefined {
  if (!form.user) return before.user ? null : undefined;
  const out: Record<string, unknown> = {};
  if (form.user !== before.user) out['user'] = form.user;
  if (form.secret) out['secret'] = { value: form.secret };
  if (form.mutualUser !== before.mutualUser) out['mutual_user'] = form.mutualUser || null;
  if (!form.mutualUser && before.mutualUser) out['mutual_secret'] = null;
  else if (form.mutualSecret) out['mutual_secret'] = { value: form.mutualSecret };
  return Object.keys(out).length ? out : undefined;
}

/** The same without secrets, as people see it. */
function hidden(chap: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(chap).map(([key, value]) => [key, key.endsWith('secret') && value ? { value: '…' } : value]));
}

export function setHost(name: string, fields: Record<string, unknown>): Change {
  const chap = fields['chap'];
  const change = set('host', name, `Settings of host ${name}`, fields);
  change.explain = 'Initiators that are logged in keep their sessions, unless they are taken away.';
  if (chap === null || typeof chap !== 'object') return change;
  const words = Object.entries(fields).filter(([key]) => key !== 'chap').map(([key, value]) => `${key}=${Array.isArray(value) ? value.join(',') : value === null ? 'none' : String(value)}`);
  const asked = chap as Record<string, unknown>;
  if (asked['user']) words.push(`chap.user=${String(asked['user'])}`);
  if (asked['secret']) words.push('chap.secret_file=FILE');
  if (asked['mutual_user'] === null) words.push('chap.mutual=none');
  else if (asked['mutual_user']) words.push(`chap.mutual_user=${String(asked['mutual_user'])}`);
  if (asked['mutual_secret']) words.push('chap.mutual_secret_file=FILE');
  return { ...change, shown: { ...fields, chap: hidden(asked) }, cli: cli('host', 'set', name, ...words) };
}

export function setTarget(name: string, fields: Record<string, unknown>): Change {
  const change = set('target', name, `Settings of target ${name}`, fields);
  const to = fields['redirect'] as { to: string; permanent?: boolean } | null | undefined;
  if (!to) return change;
  // The command line has it in one word.
  const { redirect: _, ...others } = fields;
  const words = Object.entries(others).map(([key, value]) => `${key}=${String(value)}`);
  return { ...change, cli: cli('target', 'set', name, ...words, `redirect=${to.to}${to.permanent ? ',permanent' : ''}`) };
}

export function setGrant(name: string, fields: Record<string, unknown>): Change {
  return set('grant', name, `Change of grant ${name}`, fields);
}

export function createTarget(name: string, iqn: string, group: string): Change {
  return {
    title: 'Add a target',
    verb: 'Add',
    method: 'POST',
    path: 'targets',
    body: { name, ...(iqn ? { iqn } : {}), ...(group ? { portal_group: group } : {}) },
    cli: cli('target', 'create', name || 'NAME', ...(iqn ? ['--iqn', iqn] : []), ...(group ? ['--portal-group', group] : [])),
    plans: true,
    explain: 'A target is what hosts log in to. What they see there are the LUNs that are granted through it.',
  };
}

export function removeTarget(name: string): Change {
  return {
    title: `Delete target ${name}`,
    verb: 'Delete',
    method: 'DELETE',
    path: `targets/${seg(name)}`,
    cli: cli('target', 'delete', name),
    plans: true,
    typed: name,
    explain: 'Its sessions end, and the grants through it go with it. LUNs keep their data.',
  };
}

export function discardJournal(pool: string): Change {
  return {
    title: `Give up the journal of pool ${pool}`,
    verb: 'Give it up',
    method: 'POST',
    path: `pools/${seg(pool)}/journal`,
    body: { operation: 'discard', confirm: pool },
    cli: cli('journal', 'discard', pool, '--confirm', pool),
    plans: false,
    typed: pool,
    explain: 'Writes that were acknowledged and are not destaged are lost, and a new journal is made. This cannot be undone.',
  };
}
