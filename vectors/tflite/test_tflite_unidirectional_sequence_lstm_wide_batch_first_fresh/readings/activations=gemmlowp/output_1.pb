Bfinal_output_stateJr²ÿäÊëÅ
øA÷Ænü