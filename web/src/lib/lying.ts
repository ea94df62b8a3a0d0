// What lies on which disk: members of pools, journals, LUNs. Pure.

import type { Disk, Lun, Member, Pool } from '../api/types.ts';
import { diskName, diskState } from './disks.ts';
import type { State } from './verdict.ts';
import { byState } from './worst.ts';

/** What is below a pool: a disk, or a member of which no disk is known. */
export interface Below {
  /** Of its point in the topology. */
  id: string;
  name: string;
  called: string;
  state: State;
  word: string;
  /** What of the pool lies there. */
  says: string;
  /** Members of the pool, by number. */
  members: number[];
  data: boolean;
  journal: boolean;
}

export const diskId = (id: string) => `disk:${id}`;

function ofDisk(pool: Pool, disk: Disk): Below | undefined {
  const data = disk.used_by?.includes(`pool ${pool.name}`) ?? false;
  const journal = disk.used_by?.includes(`journal of pool ${pool.name}`) ?? false;
  if (!data && !journal) return undefined;
  const members = (pool.members ?? []).flatMap((one) => (one.member !== undefined && one.disks?.includes(disk.id) ? [one.member] : []));
  const name = diskName(disk);
  return { id: diskId(disk.id), name, called: `disk ${name}`, ...diskState(disk), says: disk.used_by?.join(', ') ?? '', members, data, journal };
}

function ofMember(pool: Pool, member: Member): Below[] {
  if (member.member === undefined) return [];
  const name = `member ${member.member}`;
  const state: State = member.state === 'present' ? 'good' : 'bad';
  const called = `${name} of pool ${pool.name}`;
  return [{ id: diskId(`${pool.name} ${member.member}`), name, called, state, word: member.state, says: `${called}, ${member.path}`, members: [member.member], data: true, journal: false }];
}

/** All that a pool and its journal lie on, as far as it is known. */
export function below(pool: Pool, disks: Disk[]): Below[] {
  const known = disks.flatMap((disk) => ofDisk(pool, disk) ?? []);
  const found = new Set(known.flatMap((one) => one.members));
  return [...known, ...(pool.members ?? []).filter((one) => !found.has(one.member ?? -1)).flatMap((one) => ofMember(pool, one))];
}

/** For those whom trouble concerns: the worst first, the others as they were. */
export const troubleFirst = (all: Below[]): Below[] => [...all].sort((a, b) => byState(a.state, b.state));

/** Of that, what a LUN lies on. */
export function belowLun(lun: Lun, pool: Pool, disks: Disk[]): Below[] {
  const all = below(pool, disks);
  const on = lun.members;
  return on?.length ? all.filter((one) => one.journal || one.members.some((number) => on.includes(number))) : all;
}

/** LUNs that have a part on a member, deleted ones included: their data lies there, too. */
export function lunsOn(pool: Pool, member: number | undefined, luns: Lun[]): Lun[] {
  return luns.filter((lun) => lun.pool === pool.name && member !== undefined && lun.members?.includes(member));
}

export interface Gone {
  /** By name. */
  luns: Set<string>;
  /** Pools that have nothing left. */
  pools: Set<string>;
  /** Pools of which nobody knows how their disks are joined. */
  shared: string[];
  /** What is in a journal only. */
  unsaved: { pool: string; bytes: number }[];
}

/** What would be lost with a disk, or with a member of a pool. */
export function goneWith(id: string, pools: Pool[], luns: Lun[], disks: Disk[]): Gone {
  const gone: Gone = { luns: new Set(), pools: new Set(), shared: [], unsaved: [] };
  const take = (of: Lun[]) => of.forEach((lun) => gone.luns.add(lun.name));
  for (const pool of pools) {
    const all = below(pool, disks);
    const here = all.find((one) => one.id === id);
    if (!here) continue;
    const own = luns.filter((lun) => lun.pool === pool.name && lun.state !== 'removed');
    const isAlone = (part: 'data' | 'journal') => all.filter((one) => one[part]).length === 1;
    if (here.members.length) take(own.filter((lun) => here.members.some((number) => lun.members?.includes(number))));
    if (here.data && isAlone('data')) {
      take(own);
      gone.pools.add(pool.name);
    }
    // Without what its journal knows, no LUN of the pool is served.
    if (here.journal && isAlone('journal')) {
      take(own);
      if (pool.journal?.pending_bytes) gone.unsaved.push({ pool: pool.name, bytes: pool.journal.pending_bytes });
    }
    const unknown = here.data && !here.members.length && !isAlone('data');
    if (unknown || (here.journal && !isAlone('journal'))) gone.shared.push(pool.name);
  }
  return gone;
}
