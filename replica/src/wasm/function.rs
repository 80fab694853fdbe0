//! One function of the rewritten module: its code with the charges and the reports to the host put in.

use super::weights::operator_weight;
use std::collections::{BTreeMap, BTreeSet};
use wasm_encoder::{self as enc, BlockType, Instruction as I, MemArg, ValType};
use wasmparser::Operator;

/// The host's functions in the order of their imports: name, parameters, results.
pub(super) const HOST_FUNCTIONS: [(&str, &[ValType], &[ValType]); 7] = [
    ("out_of_instructions", &[], &[]),
    ("touch", &[ValType::I32], &[]),
    ("bulk", &[ValType::I32, ValType::I32], &[]),
    ("charge", &[ValType::I32], &[]),
    ("grown", &[ValType::I32], &[]),
    ("profile_enter", &[ValType::I32], &[ValType::I32]),
    ("profile_leave", &[ValType::I32], &[]),
];
/// How many of them are imported when nobody asks for profiles.
pub(super) const HOST_FUNCTIONS_UNPROFILED: u32 = 5;
const OUT_OF_INSTRUCTIONS: u32 = 0;
const TOUCH: u32 = 1;
const BULK: u32 = 2;
const CHARGE: u32 = 3;
const GROWN: u32 = 4;
/// Takes the index of a function, as the canister's module counts them, and gives the depth of the call stack then.
const PROFILE_ENTER: u32 = 5;
/// Takes the depth that the call stack has again.
const PROFILE_LEAVE: u32 = 6;

/// A place where the counter goes down: before the operator at `position`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Charge {
    pub position: usize,
    weight: u64,
    /// The block can be entered without bound: check that instructions are left.
    check: bool,
}

/// Cuts a function into basic blocks. `position` of a charge is the block's first operator.
pub(super) fn charges(operators: &[Operator<'_>]) -> Vec<Charge> {
    let mut out = Vec::new();
    let mut block = Charge { position: 0, weight: 1, check: true };
    for (position, operator) in operators.iter().enumerate() {
        block.weight += operator_weight(operator);
        let cuts = matches!(
            operator,
            Operator::Loop { .. }
                | Operator::If { .. }
                | Operator::Else
                | Operator::End
                | Operator::Br { .. }
                | Operator::BrIf { .. }
                | Operator::BrTable { .. }
                | Operator::Return
                | Operator::Unreachable
                | Operator::ReturnCall { .. }
                | Operator::ReturnCallIndirect { .. }
        );
        if cuts {
            let check = matches!(operator, Operator::Loop { .. });
            out.push(std::mem::replace(&mut block, Charge { position: position + 1, weight: 0, check }));
        }
    }
    out.retain(|c| c.check || c.weight > 0);
    out
}

/// The operand that a store takes from the stack, and its offset.
fn store(operator: &Operator<'_>) -> Option<(ValType, u64)> {
    use Operator as O;
    Some(match operator {
        O::I32Store { memarg } | O::I32Store8 { memarg } | O::I32Store16 { memarg } => (ValType::I32, memarg.offset),
        O::I64Store { memarg } | O::I64Store8 { memarg } | O::I64Store16 { memarg } | O::I64Store32 { memarg } => {
            (ValType::I64, memarg.offset)
        }
        O::F32Store { memarg } => (ValType::F32, memarg.offset),
        O::F64Store { memarg } => (ValType::F64, memarg.offset),
        O::V128Store { memarg }
        | O::V128Store8Lane { memarg, .. }
        | O::V128Store16Lane { memarg, .. }
        | O::V128Store32Lane { memarg, .. }
        | O::V128Store64Lane { memarg, .. } => (ValType::V128, memarg.offset),
        _ => return None,
    })
}

/// Locals that are added to a function, as far as it needs them.
#[derive(Default)]
pub(super) struct Scratch {
    address: u32,
    page: u32,
    length: u32,
    values: BTreeMap<u8, u32>,
}

fn value_key(ty: ValType) -> u8 {
    match ty {
        ValType::I32 => 0,
        ValType::I64 => 1,
        ValType::F32 => 2,
        ValType::F64 => 3,
        _ => 4,
    }
}

impl Scratch {
    pub fn new(operators: &[Operator<'_>], first: u32, locals: &mut Vec<(u32, ValType)>) -> Self {
        let mut scratch = Self { address: first, page: first + 1, length: first + 2, values: BTreeMap::new() };
        let mut needed = BTreeSet::new();
        let mut any = false;
        for operator in operators {
            if let Some((ty, _)) = store(operator) {
                needed.insert(value_key(ty));
                any = true;
            }
            if bulk(operator).is_some() || matches!(operator, Operator::MemoryGrow { .. }) {
                needed.insert(value_key(ValType::I32));
                any = true;
            }
        }
        if any {
            locals.push((3, ValType::I32));
        }
        for (position, key) in needed.into_iter().enumerate() {
            let ty = [ValType::I32, ValType::I64, ValType::F32, ValType::F64, ValType::V128][usize::from(key)];
            locals.push((1, ty));
            scratch.values.insert(key, first + 3 + position as u32);
        }
        scratch
    }

    fn value(&self, ty: ValType) -> u32 {
        self.values.get(&value_key(ty)).copied().unwrap_or_default()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Bulk {
    Memory,
    Table,
}

fn bulk(operator: &Operator<'_>) -> Option<Bulk> {
    use Operator as O;
    match operator {
        O::MemoryFill { .. } | O::MemoryCopy { .. } | O::MemoryInit { .. } => Some(Bulk::Memory),
        O::TableFill { .. } | O::TableCopy { .. } | O::TableInit { .. } => Some(Bulk::Table),
        _ => None,
    }
}

/// Writes one function.
pub(super) struct Body {
    pub function: enc::Function,
    pub scratch: Scratch,
    pub counter: u32,
    pub tables_changed: u32,
    /// Functions that the canister imports; the host's follow.
    pub imported: u32,
    /// For profiles: the local with the depth of the call stack in this function.
    pub depth: Option<u32>,
}

impl Body {
    fn emit(&mut self, instructions: &[I<'_>]) {
        for instruction in instructions {
            self.function.instruction(instruction);
        }
    }

    pub fn charge(&mut self, charge: &Charge) {
        let weight = i64::try_from(charge.weight).unwrap_or(i64::MAX);
        self.emit(&[I::GlobalGet(self.counter), I::I64Const(weight), I::I64Sub, I::GlobalSet(self.counter)]);
        if charge.check {
            self.emit(&[
                I::GlobalGet(self.counter),
                I::I64Const(0),
                I::I64LtS,
                I::If(BlockType::Empty),
                I::Call(self.imported + OUT_OF_INSTRUCTIONS),
                I::End,
            ]);
        }
    }

    pub fn entered(&mut self, index: u32) {
        if let Some(depth) = self.depth {
            self.emit(&[I::I32Const(index as i32), I::Call(self.imported + PROFILE_ENTER), I::LocalSet(depth)]);
        }
    }

    /// Control is back here, or `below` frames further down.
    pub fn left(&mut self, below: i32) {
        if let Some(depth) = self.depth {
            self.emit(&[I::LocalGet(depth), I::I32Const(below), I::I32Sub, I::Call(self.imported + PROFILE_LEAVE)]);
        }
    }

    /// A tail call takes this function's frame away. The system's functions do not report that they are entered.
    fn before_call(&mut self, operator: &Operator<'_>) {
        if self.depth.is_none() {
            return;
        }
        if matches!(operator, Operator::ReturnCall { .. } | Operator::ReturnCallIndirect { .. }) {
            self.left(1);
        }
        if let Operator::Call { function_index } | Operator::ReturnCall { function_index } = *operator
            && function_index < self.imported
        {
            self.emit(&[I::I32Const(function_index as i32), I::Call(self.imported + PROFILE_ENTER), I::Drop]);
        }
    }

    pub fn before(&mut self, operator: &Operator<'_>) {
        self.before_call(operator);
        if let Some((ty, offset)) = store(operator) {
            self.before_store(ty, offset);
        }
        match bulk(operator) {
            Some(Bulk::Memory) => {
                let (destination, source, length) =
                    (self.scratch.address, self.scratch.value(ValType::I32), self.scratch.length);
                self.emit(&[
                    I::LocalSet(length),
                    I::LocalSet(source),
                    I::LocalTee(destination),
                    I::LocalGet(length),
                    I::Call(self.imported + BULK),
                    I::LocalGet(destination),
                    I::LocalGet(source),
                    I::LocalGet(length),
                ]);
            }
            Some(Bulk::Table) => {
                let length = self.scratch.length;
                self.emit(&[I::LocalTee(length), I::LocalGet(length), I::Call(self.imported + CHARGE)]);
            }
            None => {}
        }
        let changes_tables = matches!(
            operator,
            Operator::TableSet { .. }
                | Operator::TableGrow { .. }
                | Operator::TableFill { .. }
                | Operator::TableCopy { .. }
                | Operator::TableInit { .. }
                | Operator::ElemDrop { .. }
                | Operator::DataDrop { .. }
        );
        if changes_tables {
            self.emit(&[I::I32Const(1), I::GlobalSet(self.tables_changed)]);
        }
    }

    fn before_store(&mut self, ty: ValType, offset: u64) {
        let (value, address, page) = (self.scratch.value(ty), self.scratch.address, self.scratch.page);
        self.emit(&[I::LocalSet(value), I::LocalTee(address)]);
        if offset + 16 <= 4096 {
            // Whatever the address within its page, the bytes written lie in that page or the next.
            self.emit(&[I::I32Const(12), I::I32ShrU]);
        } else {
            let offset = i64::try_from(offset).unwrap_or(i64::MAX);
            self.emit(&[I::I64ExtendI32U, I::I64Const(offset), I::I64Add, I::I64Const(12), I::I64ShrU, I::I32WrapI64]);
        }
        self.emit(&[
            I::LocalTee(page),
            I::I32Load16U(MemArg { offset: 0, align: 0, memory_index: 1 }),
            I::I32Const(0x0101),
            I::I32Ne,
            I::If(BlockType::Empty),
            I::LocalGet(page),
            I::Call(self.imported + TOUCH),
            I::End,
            I::LocalGet(address),
            I::LocalGet(value),
        ]);
    }

    pub fn after_grow(&mut self) {
        let result = self.scratch.page;
        self.emit(&[I::LocalTee(result), I::LocalGet(result), I::Call(self.imported + GROWN)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wasmparser::{Parser, Payload};

    fn of(code: &str) -> Vec<(usize, u64, bool)> {
        let wasm = wat::parse_str(format!("(module (memory 1) (table 1 funcref) (func (param i32) {code}))")).unwrap();
        for payload in Parser::new(0).parse_all(&wasm) {
            if let Payload::CodeSectionEntry(body) = payload.unwrap() {
                let operators: Vec<_> = body.get_operators_reader().unwrap().into_iter().map(Result::unwrap).collect();
                return charges(&operators).into_iter().map(|c| (c.position, c.weight, c.check)).collect();
            }
        }
        panic!("no function");
    }

    #[test]
    fn blocks_are_cut_behind_the_operator_that_ends_them() {
        // const 1, drop 1, and 1 for entering the function.
        assert_eq!(of("(drop (i32.const 1))"), [(0, 3, true)]);
        // Entry: 1. Body: get 1, br_if 2; then nop 1 and the loop's end, which weighs nothing.
        assert_eq!(of("(loop (br_if 0 (local.get 0)) nop)"), [(0, 1, true), (1, 3, true), (3, 1, false)]);
        // get 1, if 2 | nop 1, else | nop nop, end | nop
        assert_eq!(
            of("(if (local.get 0) (then nop) (else nop nop)) nop"),
            [(0, 4, true), (2, 1, false), (4, 2, false), (7, 1, false)]
        );
        // A block does not cut, its end does; what cannot be reached is paid nowhere but has its charge.
        assert_eq!(of("nop (block nop (br 0) nop nop)"), [(0, 5, true), (4, 2, false)]);
        // A loop's charge stays for its check, even when its body weighs nothing.
        assert_eq!(of("(loop)"), [(0, 1, true), (1, 0, true)]);
        // get 1, return 1; unreachable 1.
        assert_eq!(of("(if (local.get 0) (then return)) unreachable"), [(0, 4, true), (2, 1, false), (4, 1, false)]);
    }
}
