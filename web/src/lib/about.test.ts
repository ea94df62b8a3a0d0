import { describe, expect, it } from 'vitest';
import { isAbout, subjectOf } from './about.ts';

const of = (kind: string, object: string, cause = 'something else') => ({ kind, object, cause });
const ENCLOSURE = '500304801f1e2a3f';
const DARK = `bay 2 of enclosure ${ENCLOSURE} holds no disk that the system sees`;

describe('a problem of the node', () => {
  it('is about the first object that it names', () => {
    const said = [
      'LUN vm1 is offline: pool fast is missing', 'pool fast: its directory is gone', 'the journal /srv/j of pool fast takes no change any more: full',
      'portal 10.0.1.1:3260 does not listen: in use', 'portal [fd00::1]:3260 does not listen: in use', `${DARK}: push it in again`, 'disk sdb (Z4, bay 3) is failing: it is so: do it', 'the node keeps too little',
    ];
    expect(said.map(subjectOf)).toEqual([
      'LUN vm1', 'pool fast', 'pool fast', 'portal 10.0.1.1:3260', 'portal [fd00::1]:3260', `bay 2 of enclosure ${ENCLOSURE}`, 'disk sdb', undefined,
    ]);
  });
  it('of a portal is what its alert says, whose object has a port', () => {
    const problem = 'portal 10.0.1.1:3260 does not listen: in use';
    expect(isAbout(problem, of('portal', '10.0.1.1:3260', 'portal 10.0.1.1:3260 of group default does not listen: in use'))).toBe(true);
    expect(isAbout(problem, of('portal', '10.0.1.1:3261'))).toBe(false);
  });
  it('is not what the alert of a bay says only because it has that number as a word', () => {
    for (const problem of ['pool slow has only 2 % free space', 'LUN 2 is offline: gone', 'disk 2 is failing: x']) expect(isAbout(problem, of('bay', '2', DARK)), problem).toBe(false);
    expect(isAbout(`${DARK}: push it in again`, of('bay', '2', DARK))).toBe(true);
    // The bay of this number in another enclosure.
    expect(isAbout(`${DARK}: push it in again`.replace('1f1e', '0000'), of('bay', `${ENCLOSURE}:2`, DARK))).toBe(false);
  });
  it('is told apart by kind and by the whole name', () => {
    expect(isAbout('pool fast: its directory is gone', of('pool', 'fast'))).toBe(true);
    expect(isAbout('pool fast: its directory is gone', of('lun', 'fast'))).toBe(false);
    expect(isAbout('pool fast-2 is full', of('pool', 'fast'))).toBe(false);
    expect(isAbout('LUN vm1.old is offline: gone', of('lun', 'vm1'))).toBe(false);
    // What a LUN waits for is another trouble, with an alert of its own.
    expect(isAbout('LUN vm1 is offline: pool fast is missing', of('pool', 'fast'))).toBe(false);
  });
  it('of a disk is what its alert says, whatever figures it has by now', () => {
    const alert = of('disk', 'naa.5000c500a1b2c3d0', 'disk sdb (Z4, bay 3) is failing: 10 sectors are reallocated');
    expect(isAbout('disk sdb (Z4, bay 3) is failing: 12 sectors are reallocated: replace it', alert)).toBe(true);
    expect(isAbout('disk sdc (Z5, bay 4) is failing: 12 sectors are reallocated: replace it', alert)).toBe(false);
  });
});
