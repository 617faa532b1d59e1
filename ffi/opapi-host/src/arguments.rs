//! The tensors of a call, in the order of its prototype.

use crate::descriptor::{TENSOR_LISTS, live};
use crate::failure::Failure;
use crate::memory::{self, Span};
use crate::operand::{Dtype, Operand};
use tilekern::Tensor;
use tilekern_acl::{aclTensor, aclTensorList};

/// A parameter: a tensor, the members of a list, or nothing.
#[derive(Clone)]
struct Argument {
    list: usize,
    operands: Vec<Operand>,
}

/// The parameters, in the order of the prototype.
#[derive(Clone, Default)]
pub(crate) struct Arguments {
    inputs: Vec<Argument>,
    outputs: Vec<Argument>,
}

/// Which parameters an index counts.
#[derive(Clone, Copy)]
pub(crate) enum Among {
    Inputs,
    Outputs,
    /// Inputs first.
    Both,
}

impl Arguments {
    fn add(&mut self, writes: bool, argument: Argument) {
        if writes { self.outputs.push(argument) } else { self.inputs.push(argument) }
    }

    /// A tensor that is read, and must be there.
    pub fn input(&mut self, name: &'static str, handle: *const aclTensor) -> Result<(), Failure> {
        self.add(false, Argument { list: 0, operands: vec![Operand::of(name, handle as usize, false)?] });
        Ok(())
    }

    /// A tensor that is read, or null.
    pub fn optional(&mut self, name: &'static str, handle: *const aclTensor) -> Result<(), Failure> {
        if !handle.is_null() {
            return self.input(name, handle);
        }
        self.add(false, Argument { list: 0, operands: Vec::new() });
        Ok(())
    }

    /// A tensor that is written, and must be there.
    pub fn output(&mut self, name: &'static str, handle: *const aclTensor) -> Result<(), Failure> {
        self.add(true, Argument { list: 0, operands: vec![Operand::of(name, handle as usize, true)?] });
        Ok(())
    }

    /// The members of a list, which must be there and have some.
    pub fn list(&mut self, name: &'static str, handle: *const aclTensorList) -> Result<(), Failure> {
        let members = live(&TENSOR_LISTS, name, handle as usize)?;
        if members.is_empty() {
            return Err(Failure::invalid(format!("{name}: an empty list")));
        }
        let operands = members.iter().map(|&member| Operand::of(name, member, false)).collect::<Result<_, _>>()?;
        self.add(false, Argument { list: handle as usize, operands });
        Ok(())
    }

    /// The same, or null.
    pub fn optional_list(&mut self, name: &'static str, handle: *const aclTensorList) -> Result<(), Failure> {
        if !handle.is_null() {
            return self.list(name, handle);
        }
        self.add(false, Argument { list: 0, operands: Vec::new() });
        Ok(())
    }

    fn all(&self) -> impl Iterator<Item = &Operand> {
        self.inputs.iter().chain(&self.outputs).flat_map(|argument| &argument.operands)
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut Operand> {
        self.inputs.iter_mut().chain(&mut self.outputs).flat_map(|argument| &mut argument.operands)
    }

    /// The tensor of a parameter that may be null.
    pub fn find(&self, name: &str) -> Option<&Operand> {
        self.all().find(|operand| operand.name() == name)
    }

    /// The tensor of a parameter.
    pub fn get(&self, name: &str) -> Result<&Operand, Failure> {
        self.find(name).ok_or_else(|| Failure::null(name))
    }

    /// The members of a list.
    pub fn members(&self, name: &str) -> Vec<&Operand> {
        self.all().filter(|operand| operand.name() == name).collect()
    }

    /// Other descriptions of the tensors of a parameter.
    pub fn relabel(&mut self, name: &str, change: impl Fn(&mut Operand) -> Result<(), Failure>) -> Result<(), Failure> {
        self.all_mut().filter(|operand| operand.name() == name).try_for_each(change)
    }

    /// A tensor to read that may be missing.
    pub fn optional_view<T: Dtype>(&self, name: &str) -> Result<Option<Tensor<'_, T>>, Failure> {
        self.find(name).map(Operand::view).transpose()
    }

    /// The parameters that are not looked at are not used either: no memory need be behind them.
    pub fn ignore(&mut self, names: &[&str]) {
        for argument in self.inputs.iter_mut().chain(&mut self.outputs) {
            argument.operands.retain(|operand| !names.contains(&operand.name()));
        }
    }

    /// Finds addresses in memory of the device, where they are.
    pub fn locate(&mut self) -> Result<(), Failure> {
        for operand in self.all_mut() {
            operand.locate()?;
        }
        Ok(())
    }

    /// What all of them use; an address that is none is an error by now.
    pub fn spans(&self) -> Result<Vec<Span>, Failure> {
        let mut spans = Vec::new();
        for operand in self.all() {
            let Some(span) = operand.span()? else { continue };
            if operand.spec.data == 0 {
                return Err(Failure::null(&format!("{}: the address of its data", operand.name())));
            }
            memory::check(&operand.reach(&span)).map_err(Failure::invalid)?;
            spans.push(span);
        }
        Ok(spans)
    }

    /// Whether no descriptor was destroyed since.
    pub fn alive(&self) -> Result<(), Failure> {
        self.all().try_for_each(Operand::alive)
    }

    /// Another address for a tensor, or for a member of a list: the handles are those of the first phase.
    pub fn set_address(
        &mut self,
        among: Among,
        [index, member]: [usize; 2],
        handle: usize,
        is_list: bool,
        address: usize,
    ) -> Result<(), Failure> {
        let inputs = self.inputs.len();
        let argument = match among {
            Among::Inputs => self.inputs.get_mut(index),
            Among::Outputs => self.outputs.get_mut(index),
            Among::Both if index < inputs => self.inputs.get_mut(index),
            Among::Both => self.outputs.get_mut(index - inputs),
        };
        let argument = argument.ok_or_else(|| Failure::invalid(format!("index {index}: there are fewer parameters")))?;
        let is_own = |operand: &Operand| if is_list { handle != 0 && argument.list == handle } else { operand.is_of(handle) };
        let own = argument.operands.get(member).is_some_and(is_own);
        let other = || Failure::invalid(format!("index {index}: the first phase had another tensor there, or none"));
        argument.operands.get_mut(member).filter(|_| own).ok_or_else(other)?.spec.data = address;
        Ok(())
    }
}
