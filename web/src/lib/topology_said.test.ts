import { describe, expect, it } from 'vitest';
import { topology } from './topology.ts';
import { facts } from './topology_made_up.ts';
import { flowsOf, lineSaid, partSaid } from './topology_said.ts';
import { whatIf } from './whatif.ts';

describe('what map and list say', () => {
  const drawn = topology(facts);
  const flows = flowsOf(drawn);
  const said = (id: string, lost?: Set<string>) => {
    const { state, word, flow } = partSaid(drawn.points.find((one) => one.id === id) ?? expect.fail(`no ${id}`), flows, lost);
    return `${state}: ${word}, ${flow}`;
  };
  const line = (id: string, lost?: Set<string>) => lineSaid(drawn.edges.find((one) => one.id === id) ?? expect.fail(`no ${id}`), lost);

  it('is how a part stands, and what flows there', () => {
    expect(['host:mesh', 'portal:10.0.2.1:3260', 'lun:away', 'lun:used', 'pool:spare', 'disk:sda', 'disk:sdc', 'node:san'].map((id) => said(id))).toEqual([
      'good: 4 paths, 4 MiB/s', 'bad: does not listen, ', 'bad: offline, ', 'good: online, 4 MiB/s', 'bad: full, ', 'bad: failing, flow unknown', 'good: well, ', 'warn: degraded, 4 MiB/s',
    ]);
    expect(said('card:mesh\nx\niqn.mesh')).toBe('good: 2 NICs, 4 MiB/s');
    expect(said('node card:c0')).toBe('good: 2 NICs, 4 MiB/s');
  });
  it('is the flow of a line, also of one of which it is not known, and its p99', () => {
    expect(line('port:mesh\neth-10.0.0.7\niqn.mesh>portal:10.0.0.1:3260')).toEqual({ state: 'bad', word: 'crosses other paths: they hold each other up', flow: '1 MiB/s, p99 900 µs' });
    expect(line('pool:fast>disk:sda').flow).toBe('flow unknown');
  });
  it('is that it would be lost, with whatever is chosen', () => {
    const node = drawn.points.find((one) => one.kind === 'node') ?? expect.fail('no node');
    const { lost } = whatIf(facts, node);
    expect(said('lun:used', lost)).toBe('bad: lost, 4 MiB/s');
    expect(line('node:san>lun:used', lost)).toMatchObject({ state: 'bad', word: 'lost' });
    expect(line('pool:spare>disk:sdc', lost)).toMatchObject({ state: 'good' });
  });
});
