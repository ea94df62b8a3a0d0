// What helps a login that was refused: a grant cures one of the reasons only. Pure.

import type { Grant, Host, Lun, Refusal, Target } from '../api/types.ts';

export interface Known {
  hosts: Host[];
  targets: Target[];
  grants: Grant[];
}

export interface Remedy {
  /** In plain words. */
  says: string;
  /** What one click does about it. */
  does?: 'allow' | 'end maintenance';
  /** The target in question. */
  target?: string;
  /** Where it is mended. */
  link?: { href: string; text: string };
}

/** The host that has the initiator by its name: not the one for every initiator, which nobody means with one of them. */
export function ownerOf(initiator: string, hosts: Host[]): Host | undefined {
  return hosts.find((host) => host.iqn.includes(initiator.toLowerCase()));
}

export function remedy(refusal: Refusal, { hosts, targets, grants }: Known): Remedy {
  const owner = ownerOf(refusal.initiator, hosts);
  const believed = owner ?? hosts.find((host) => host.iqn.includes('*'));
  const target = targets.find((one) => one.iqn === refusal.target);
  switch (refusal.code) {
    case 'CWY2001':
      return { says: 'There is no target of this name: compare it on the host with those that there are.', link: { href: '/targets', text: 'Targets' } };
    case 'CWY2002':
      return {
        says: 'It is known, and did not prove who it is: user and secret must be the same on both sides.',
        ...(believed ? { link: { href: `/hosts/${encodeURIComponent(believed.name)}?do=set`, text: 'Set CHAP' } } : {}),
      };
    case 'CWY2003':
      if (believed && grants.some((grant) => grant.host === believed.name && grant.target === target?.name)) return { says: `It may log in by now, as host ${believed.name}.` };
      return { says: owner ? `Nothing is granted to host ${owner.name} through this target.` : 'Its name belongs to no host.', ...(refusal.initiator ? { does: 'allow' } : {}) };
    case 'CWY2004':
      return { says: 'There were too many sessions or too little memory: end sessions that nobody needs.', link: { href: '/hosts?view=sessions', text: 'Sessions' } };
    case 'CWY2005':
      return { says: 'It does not speak as the standard says: update the initiator.' };
    case 'CWY2006':
      return { says: 'The target was deleted: remove it on the host, so that it stops trying.' };
    case 'CWY2007':
      if (target?.maintenance) return { says: `Target ${target.name} is in maintenance: it lets nobody in until that ends.`, does: 'end maintenance', target: target.name };
      return { says: 'The target was not ready, or in maintenance, which is over: the host tries again by itself.' };
    case 'CWY2008':
      return { says: 'It was sent to another address: nothing is to be done where it goes there.', ...(target ? { link: { href: `/targets/${encodeURIComponent(target.name)}`, text: `Target ${target.name}` } } : {}) };
    default:
      return { says: '' };
  }
}

/** The refusal that an address names, by initiator and target: the same initiator may have been refused at several. */
export function refusalOf(refusals: Refusal[], initiator: string, target: string): Refusal | undefined {
  const own = refusals.filter((one) => one.initiator === initiator);
  const exact = own.find((one) => one.target === target);
  // An address that names no target, where there is one alone.
  const only = target === '' && own.every((one) => one.target === own[0]?.target);
  return exact ?? (only ? own[0] : undefined);
}

/** LUNs that an initiator may be given, those first that others get through the target; and which of them, where that is plain. */
export function choices(owner: Host | undefined, target: string, luns: Lun[], grants: Grant[]): { luns: string[]; own: string[]; plain: string[] } {
  const served = new Set(luns.filter((one) => one.state !== 'removed').map((one) => one.name));
  const here = new Set(grants.filter((grant) => grant.target === target).map((grant) => grant.lun));
  const own = [...new Set(grants.filter((grant) => grant.host === owner?.name && served.has(grant.lun)).map((grant) => grant.lun))].sort();
  const all = [...served].sort((a, b) => Number(here.has(b)) - Number(here.has(a)) || a.localeCompare(b));
  const through = all.filter((lun) => here.has(lun));
  const only = through.length ? through : all;
  return { luns: all, own, plain: own.length ? own : only.length === 1 ? only : [] };
}
