//! The message: argument, caller, reply, reject.

use super::contexts::*;
use super::*;

pub(super) fn link(linker: &mut Linker<Host>) -> Result<(), ModuleError> {
    bytes!(linker, msg_arg_data_size, msg_arg_data_copy, ARGUMENT, |m| m.argument);
    bytes!(linker, msg_caller_size, msg_caller_copy, NOT_START, |m| m.caller.as_slice());
    bytes!(linker, msg_caller_info_data_size, msg_caller_info_data_copy, NOT_START, |_m| [0u8; 0]);
    bytes!(linker, msg_caller_info_signer_size, msg_caller_info_signer_copy, NOT_START, |_m| [0u8; 0]);
    bytes!(linker, msg_reject_msg_size, msg_reject_msg_copy, REJECT_MESSAGE, |m| m.reject.1.as_bytes());
    bytes!(linker, msg_method_name_size, msg_method_name_copy, INSPECT, |m| m.method.as_bytes());
    ic0!(linker, msg_reject_code, REJECT_CODE, |c| -> u32 { Ok(c.message()?.reject.0) });
    ic0!(linker, msg_deadline, DEADLINE, |c| -> u64 { Ok(c.message()?.deadline) });
    ic0!(linker, msg_reply_data_append, RESPOND, |c, start: u32, length: u32| -> () {
        c.charge_bytes(length.into())?;
        let bytes = c.read(start, length)?;
        let name = c.name;
        let message = c.message()?;
        not_responded(message.may_respond && message.response.is_none(), name)?;
        let total = message.reply.len() + bytes.len();
        if total > message.reply_bytes_max {
            return Err(Trap::Contract(format!(
                "ic0.{name}: application payload size ({total}) cannot be larger than {}",
                message.reply_bytes_max
            )));
        }
        message.reply.extend_from_slice(&bytes);
        Ok(())
    });
    ic0!(linker, msg_reply, RESPOND, |c| -> () {
        let name = c.name;
        let message = c.message()?;
        not_responded(message.may_respond && message.response.is_none(), name)?;
        message.response = Some(Ok(std::mem::take(&mut message.reply)));
        Ok(())
    });
    ic0!(linker, msg_reject, RESPOND, |c, start: u32, length: u32| -> () {
        c.charge_bytes(length.into())?;
        let bytes = c.read(start, length)?;
        let name = c.name;
        let message = c.message()?;
        not_responded(message.may_respond && message.response.is_none(), name)?;
        if bytes.len() > message.reply_bytes_max {
            return Err(Trap::Contract(format!(
                "ic0.{name}: application payload size ({length}) cannot be larger than {}",
                message.reply_bytes_max
            )));
        }
        let text = String::from_utf8(bytes)
            .map_err(|_| Trap::Contract(format!("ic0.{name}: the message is not valid UTF-8")))?;
        message.response = Some(Err(text));
        Ok(())
    });
    ic0!(linker, accept_message, INSPECT, |c| -> () {
        let message = c.message()?;
        if std::mem::replace(&mut message.accepted, true) {
            return Err(Trap::Contract("ic0.accept_message: the function was already called".into()));
        }
        Ok(())
    });
    Ok(())
}

fn not_responded(can: bool, name: &str) -> Result<(), Trap> {
    if can { Ok(()) } else { Err(Trap::Contract(format!("ic0.{name}: the call is already replied"))) }
}
