import { describe, expect, it } from 'vitest';
import type { Lun } from '../api/types.ts';
import { DRAWN, WORDS, topology, type Facts, type Topology } from './topology.ts';
import { listOf, type Row } from './topology_list.ts';
import { facts, host } from './topology_made_up.ts';

const rowsOf = (rows: Row[]): Row[] => rows.flatMap((row) => [row, ...rowsOf(row.rows)]);
const all = (drawn: Topology) => listOf(drawn).flatMap((chapter) => rowsOf(chapter.rows));
const row = (drawn: Topology, id: string) => all(drawn).find((one) => one.point.id === id) ?? expect.fail(`no ${id}`);
const unique = (ids: string[]) => [...new Set(ids)].toSorted();
/** What the map shows, and the list. */
const parts = (drawn: Topology) => drawn.points.map((point) => point.id).toSorted();
const listed = (drawn: Topology) => unique(all(drawn).map((one) => one.point.id));
const lines = (drawn: Topology) => drawn.edges.map((edge) => edge.id).toSorted();
const linesListed = (drawn: Topology) => unique(all(drawn).flatMap((one) => [...(one.line ? [one.line.id] : []), ...one.onward.map(({ edge }) => edge.id)]));

describe('the topology as a list', () => {
  const drawn = topology(facts);

  it('has a row of each part that the map shows, of each kind', () => {
    expect(unique(drawn.points.map((point) => point.kind))).toEqual(Object.keys(WORDS).toSorted());
    expect(listed(drawn)).toEqual(parts(drawn));
    for (const id of ['node:san', 'portal:10.0.2.1:3260', 'lun:nobodys', 'pool:spare', 'disk:sdc', 'host:off', 'card:mesh\nx\niqn.mesh']) expect(listed(drawn)).toContain(id);
  });
  it('has each line, and those of a path that was lost', () => {
    expect(linesListed(drawn)).toEqual(lines(drawn));
    const lost = row(drawn, 'port:one\n10.0.1.8\niqn.one');
    expect([lost.line?.says, lost.onward.map(({ edge }) => `${edge.state}: ${edge.says}`)]).toEqual(['lost since 15:43', ['bad: lost since 15:43']]);
  });
  it('has all of it also where a filter or a part of a column leaves something out', () => {
    const many: Facts = {
      ...facts, luns: Array.from({ length: 3 * DRAWN }, (_, i) => ({ ...facts.luns[i % 3], name: `lun${i}` }) as Lun),
      hosts: [...facts.hosts, ...Array.from({ length: 2 * DRAWN }, (_, i) => host(`a${i}`, 0))],
    };
    for (const some of [topology(many), topology(many, '', { lun: DRAWN, host: DRAWN }), topology(many, 'mesh'), topology(many, 'lun7'), topology(many, 'nothing')]) {
      expect(listed(some)).toEqual(parts(some));
      expect(linesListed(some)).toEqual(lines(some));
    }
    expect(listed(topology(many))).toEqual(expect.arrayContaining(['more:host', 'more:lun']));
    // The hosts that cross are not drawn: their mistake stands at what is in their place.
    expect(row(topology(many), 'more:host').mistakes.map((one) => one.wrong)).toEqual(['crosses']);
  });
  it('says what is wrong with the paths of a host beside it, with the remedy', () => {
    const found = all(drawn).flatMap((one) => one.mistakes.map((mistake) => [one.point.name, mistake.wrong, mistake.remedy]));
    expect(found).toEqual([['mesh', 'crosses', expect.stringContaining('Pair each port')]]);
    expect(unique(all(drawn).flatMap((one) => one.mistakes.map((mistake) => mistake.says)))).toEqual(unique(drawn.mistakes.map((mistake) => mistake.says)));
    expect(row(drawn, 'port:mesh\neth-10.0.0.7\niqn.mesh').onward.map(({ edge }) => edge.wrong)).toEqual(['crosses', 'crosses']);
  });
  it('has what a frame holds below it: NICs below their card, portals below network, card and NIC', () => {
    const below = (id: string) => row(drawn, id).rows.map((one) => one.point.id);
    expect(below('card:mesh\nx\niqn.mesh')).toEqual(['port:mesh\neth-10.0.0.7\niqn.mesh', 'port:mesh\neth-10.0.1.7\niqn.mesh']);
    expect(below('network:10.0.2.0/24')).toEqual(['node card:c2']);
    expect(below('node nic:p2')).toEqual(['portal:10.0.2.1:3260']);
  });
});
