// Changes of users, tokens and one's own password. Pure.

import type { Role } from '../api/types.ts';
import { cli, seg, type Change } from './changes.ts';
import { plural } from './format.ts';

export const ROLES: Role[] = ['viewer', 'operator', 'admin'];
export const MAY: Record<Role, string> = {
  viewer: 'reads everything but users, tokens, receivers of alerts, the audit log and support bundles',
  operator: 'changes LUNs, targets, hosts, grants and journals of pools, ends sessions of hosts, scrubs, and sees to alerts and their rules',
  admin: 'changes users, tokens, receivers of alerts and settings, such as pools and portals, as well, and reads all of these and the audit log',
};
export const LEAST_PASSWORD = 12;
const HIDDEN = '…';

export function createUser(name: string, role: Role, password: string, mustChange: boolean): Change {
  const body = { name, role, password, must_change: mustChange };
  return {
    title: 'Add a user',
    verb: 'Add',
    method: 'POST',
    path: 'users',
    body,
    shown: { ...body, password: HIDDEN },
    cli: cli('user', 'create', name || 'NAME', '--role', role, mustChange && '--must-change'),
    plans: false,
    explain: 'The command line asks for the password.',
  };
}

export function setUser(name: string, fields: { role?: Role; enabled?: boolean }): Change {
  return {
    title: `Change user ${name}`,
    verb: 'Change',
    method: 'PATCH',
    path: `users/${seg(name)}`,
    body: fields,
    cli: cli('user', 'set', name, ...(fields.role ? ['--role', fields.role] : []), ...(fields.enabled === undefined ? [] : ['--enabled', String(fields.enabled)])),
    plans: false,
    explain: 'It holds at once. Who may not log in any more loses all sessions.',
  };
}

export function resetPassword(name: string, password: string, mustChange: boolean): Change {
  return {
    title: `A new password for user ${name}`,
    verb: 'Set it',
    method: 'PATCH',
    path: `users/${seg(name)}`,
    body: { password, must_change: mustChange },
    shown: { password: HIDDEN, must_change: mustChange },
    cli: cli('user', 'set', name, '--password', mustChange && '--must-change'),
    plans: false,
    explain: 'All their sessions end.',
  };
}

export function removeUser(name: string): Change {
  return {
    title: `Remove user ${name}`,
    verb: 'Remove',
    method: 'DELETE',
    path: `users/${seg(name)}`,
    cli: cli('user', 'delete', name),
    plans: true,
    typed: name,
    explain: 'All their sessions end. Tokens that they made stay: revoke these by themselves.',
  };
}

export function createToken(name: string, role: Role, days: number | undefined): Change {
  return {
    title: 'Make a token',
    verb: 'Make it',
    method: 'POST',
    path: 'tokens',
    body: { name, role, ...(days === undefined ? {} : { days }) },
    cli: cli('token', 'create', name || 'NAME', '--role', role, ...(days === undefined ? [] : ['--days', String(days)])),
    plans: false,
    explain: 'A program sends it instead of a password. It is shown once: only its hash is kept.',
  };
}

export function revokeToken(id: string, name: string): Change {
  return {
    title: `Revoke token ${name}`,
    verb: 'Revoke',
    method: 'DELETE',
    path: `tokens/${seg(id)}`,
    cli: cli('token', 'delete', id),
    plans: true,
    typed: name,
    explain: 'Whatever sends it is refused from now on.',
  };
}

export function ownPassword(user: string, old: string, wanted: string): Change {
  return {
    title: 'Change my password',
    verb: 'Change it',
    method: 'PUT',
    path: 'me/password',
    body: { old, new: wanted },
    shown: { old: HIDDEN, new: HIDDEN },
    cli: cli('user', 'set', user, '--password'),
    plans: false,
    own: true,
    explain: 'All your other sessions end. An admin does it for others on the command line, without the old one.',
  };
}

export function endOtherSessions(user: string, others: number): Change {
  return {
    title: 'End my other sessions',
    verb: 'End them',
    method: 'DELETE',
    path: 'me/sessions',
    cli: cli('user', 'end-sessions', user),
    plans: false,
    typed: user,
    own: true,
    explain: `${plural(others, 'session')} of ${user} in other browsers. Whoever sits there has to log in again. This page stays; the command line, which has no session of its own, ends that one as well.`,
  };
}
