import { describe, expect, it } from 'vitest';
import { csv, flat, json, nextOrder, readOrder, sorted, type Column } from './columns.ts';
import { find, type Entry } from './find.ts';

interface Row { name: string; size?: number }
const columns: Column<Row>[] = [
  { key: 'name', title: 'Name', value: (row) => row.name },
  { key: 'size', title: 'Size', right: true, value: (row) => row.size },
];
const rows: Row[] = [{ name: 'vm10', size: 1 }, { name: 'vm9' }, { name: 'vm2', size: 3 }];
const names = (of: Row[]) => of.map((row) => row.name).join(' ');

describe('a table', () => {
  it('sorts names as people count, and what has no value last', () => {
    expect(names(sorted(rows, columns, readOrder('', 'name')))).toBe('vm2 vm9 vm10');
    expect(names(sorted(rows, columns, readOrder('-size', 'name')))).toBe('vm2 vm10 vm9');
    expect(names(sorted(rows, columns, readOrder('size', 'name')))).toBe('vm10 vm2 vm9');
    expect(names(sorted(rows, columns, readOrder('nonsense', 'name')))).toBe('vm10 vm9 vm2');
  });
  it('begins with the largest figure, and turns round', () => {
    const [name, size] = columns as [Column<Row>, Column<Row>];
    expect(nextOrder(readOrder('name', 'name'), size)).toBe('-size');
    expect(nextOrder(readOrder('-size', 'name'), size)).toBe('size');
    expect(nextOrder(readOrder('name', 'name'), name)).toBe('-name');
  });
  it('as a file runs nothing', () => {
    expect(csv([{ name: '=cmd|x', size: 2 }, { name: 'a,"b"' }], columns)).toBe('Name,Size\r\n\'=cmd|x,2\r\n"a,""b""",\r\n');
    for (const beginning of ['=', '+', '-', '@', '\t']) expect(csv([{ name: `${beginning}1` }], columns)).toContain(`\r\n'${beginning}1,`);
    expect(csv([{ name: 'a', size: -2 }], columns), 'a number is one').toContain('a,-2');
  });
  it('of documents has all that any of them has, also what is inside', () => {
    const rows = [{ id: 1, chap: { user: 'u' }, iqn: ['a', 'b'] }, { id: 2, last_use: null, on: true }];
    expect(csv(rows, flat(rows))).toBe('id,chap.user,iqn,last_use,on\r\n1,u,a; b,,\r\n2,,,,true\r\n');
    expect(JSON.parse(json(rows))).toEqual(rows);
    expect(JSON.parse(json([{ name: 'a', size: 3 }], columns))).toEqual([{ name: 'a', size: 3 }]);
  });
});

describe('the palette', () => {
  const entry = (name: string, also = ''): Entry => ({ kind: 'LUN', name, icon: '', also });
  it('shows what begins so first, then what has it, then what is known by it', () => {
    const all = [entry('my-vm'), entry('x', 'serial-vm'), entry('vm1'), entry('vm'), entry('v-m')];
    expect(find(all, 'VM', 9).map((one) => one.name)).toEqual(['vm', 'vm1', 'my-vm', 'x', 'v-m']);
    expect(find(all, '', 2)).toHaveLength(2);
  });
});
