BY_hJ(gz
ƒµyy{¥w¥w]zexÚƒ¥w0u0u0u0u0ub}W~¯€VzT~