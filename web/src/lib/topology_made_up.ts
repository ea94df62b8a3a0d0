// Topologies of tests: what the map and the list are held against. Pure.

import type { Disk, Grant, Host, Lun, NodeNic, Pool, Session, Status } from '../api/types.ts';
import type { Moment } from '../live/rates.ts';
import type { LostPath } from './lost_paths.ts';
import type { Facts } from './topology.ts';

const PORTALS = ['10.0.0.1:3260', '10.0.1.1:3260', '10.0.2.1:3260'];
const MB = 1 << 20;
const session = (id: number, host: string, from: string, at: number, card?: string) => ({
  id, host, initiator: `iqn.${host}`, from: `${from}:${50_000 + id}`, portal: PORTALS[at], target: 't', since: '', luns: [],
  ...(card && { nic: { name: `eth-${from}`, card, planned: false } }),
}) as unknown as Session;
export const host = (name: string, least: number) => ({ name, iqn: [], sessions: least, redundancy: { connected: least > 0, least_paths: least, targets: [] } }) as unknown as Host;
const nic = (at: number, card: string): NodeNic => ({ name: `p${at}`, card, links: 1, mtu: 9000, carrier: true, addresses: [{ address: `10.0.${at}.1`, network: `10.0.${at}.0/24` }] });
const disk = (id: string, health: Disk['health'], ...used_by: string[]) => ({ id, names: [id], health, smart: 'read', facts: {}, used_by }) as Disk;

/**
 * A mesh of host `mesh` that crosses, with two NICs on one card; host `one` with one path, and one that it lost; a host
 * that is off; a portal of which no session comes; LUNs without a grant, offline, and of no pool; a pool that holds no
 * LUN and is full; disks that fail, and of which nobody knows what they get.
 */
export const facts: Facts = {
  status: {
    node: 'san', health: 'degraded', problems: [], pools: [], counts: {}, nics: [nic(0, 'c0'), nic(1, 'c0'), nic(2, 'c2')],
    portals: PORTALS.map((address, i) => ({ group: 'a', tag: 1, address, ...(i === 2 && { problem: 'in use' }) })),
  } as unknown as Status,
  hosts: [host('mesh', 4), host('one', 1), host('off', 0)],
  sessions: [
    session(1, 'mesh', '10.0.0.7', 0, 'x'), session(2, 'mesh', '10.0.0.7', 1, 'x'), session(3, 'mesh', '10.0.1.7', 0, 'x'), session(4, 'mesh', '10.0.1.7', 1, 'x'),
    session(5, 'one', '10.0.0.8', 0),
  ],
  gone: [{ ...session(9, 'one', '10.0.1.8', 1), lost: 'lost since 15:43' } as LostPath],
  luns: [
    { name: 'used', state: 'online', pool: 'fast', grants: ['mesh'], backing: 'pool fast' },
    { name: 'nobodys', state: 'online', pool: 'fast', grants: [], backing: 'pool fast' },
    { name: 'away', state: 'offline', reason: 'its disk is gone', pool: 'fast', grants: ['one'], backing: 'pool fast' },
    { name: 'lone', state: 'online', grants: ['one'], backing: '/dev/sdz' },
  ] as unknown as Lun[],
  pools: [{ name: 'fast', state: 'ok' }, { name: 'spare', state: 'full' }] as Pool[],
  grants: [{ name: 'g', host: 'mesh', lun: 'used', lun_id: 0 }] as Grant[],
  disks: [disk('sda', 'failing', 'pool fast'), disk('sdb', 'well', 'pool fast'), disk('sdc', 'well', 'pool spare')],
  p99: new Map([[1, 900]]),
  moment: {
    sessions: new Map([1, 2, 3, 4].map((id) => [id, { bytesIn: MB, bytesOut: 0, commands: 1 }])), luns: new Map([['used', { readBytes: 4 * MB, writeBytes: 0 }]]),
  } as unknown as Moment,
};
